/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* coupled.h for user space, where it is tested. */
#include <stdint.h>

typedef uint32_t __u32;
typedef uint64_t __u64;
typedef int64_t __s64;
#define INLINE static inline
#define CALLED static inline

#include "coupled.h"

int64_t sumrate_reno_growth(const struct group *g, uint32_t me, uint64_t now)
{
	(void)now;
	return reno_growth(&g->path[me]);
}

int64_t sumrate_lia_growth(const struct group *g, uint32_t me, uint64_t now)
{
	return lia_growth(g, &g->path[me], now);
}

int64_t sumrate_olia_growth(const struct group *g, uint32_t me, uint64_t now)
{
	return olia_growth(g, &g->path[me], now);
}

int64_t sumrate_balia_growth(const struct group *g, uint32_t me, uint64_t now)
{
	return balia_growth(g, &g->path[me], now);
}

uint32_t sumrate_halved(const struct group *g, uint32_t me, uint64_t now)
{
	(void)now;
	return halved(g->path[me].window);
}

uint32_t sumrate_balia_after_loss(const struct group *g, uint32_t me, uint64_t now)
{
	return balia_after_loss(g, &g->path[me], g->path[me].window, now);
}

uint32_t sumrate_grown(int64_t *saved, uint32_t window, int64_t growth, uint32_t acked)
{
	return grown(saved, window, growth, acked);
}

uint64_t sumrate_run_on_ack(uint64_t run, uint64_t acked, uint64_t lost_at)
{
	return run_on_ack(run, acked, lost_at);
}

uint64_t sumrate_run_after_loss(uint64_t acked, uint64_t *lost_at)
{
	return run_after_loss(acked, lost_at);
}

uint64_t sumrate_quality(uint64_t amount, uint64_t rtt)
{
	return quality(amount, rtt);
}

uint32_t sumrate_threshold_of(uint32_t threshold, uint32_t window)
{
	return threshold_of(threshold, window);
}
