/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* OLIA (Khalili et al., 2012): LIA's aim, with the windows moved towards the paths that lose least. */
#define NAME olia
#include "algorithm.h"

ALGORITHM(olia_growth, halves);
