/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Reno for each subflow on its own, in the same programs and the same arithmetic: what is left of
 * the coupled ones when nothing is coupled, for comparison. */
#define NAME reno
#include "algorithm.h"

INLINE __s64 uncoupled(const struct group *g, const struct path *me, __u64 now)
{
	return reno_growth(me);
}

ALGORITHM(uncoupled, halves);
