/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* BALIA (Peng et al., 2016): between LIA's friendliness and OLIA's responsiveness; a slow path loses more
 * than half of its window. */
#define NAME balia
#include "algorithm.h"

ALGORITHM(balia_growth, balia_after_loss);
