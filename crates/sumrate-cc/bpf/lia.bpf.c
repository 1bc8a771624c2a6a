/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* LIA (RFC 6356): together the subflows take what one TCP would on the best of their paths. */
#define NAME lia
#include "algorithm.h"

ALGORITHM(lia_growth, halves);
