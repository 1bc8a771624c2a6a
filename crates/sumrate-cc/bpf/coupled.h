/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* The arithmetic of LIA, OLIA and BALIA in integers, for eBPF and for user space alike: no 128-bit
 * products, no signed division, no floating point.
 *
 * All three formulas are functions of the windows w and of the shares s_k = x_k / (x_1 + ... + x_n)
 * of the rates x_k = w_k / rtt_k. With them, growth per acknowledged segment is
 *
 *   Reno   1 / w_r
 *   LIA    min(1 / w_r, max_k(s_k^2 / w_k))         RFC 6356: alpha / w_total is the second term
 *   OLIA   (s_r^2 + epsilon_r) / w_r
 *   BALIA  (s_r + s_max) (4 s_r + s_max) / (10 w_r)
 *
 * and what a loss takes is w_r / 2, for BALIA w_r / 2 x min(s_max / s_r, 1.5).
 *
 * Units: windows in segments, 1 to 2^20; RTTs in microseconds, 1 to 2^24; shares in 2^-30; growth
 * in 2^-40 segments. Values beyond are taken as the bound, which a path of more than a million
 * segments in flight or 16 s of RTT can bear. */
#ifndef SUMRATE_COUPLED_H
#define SUMRATE_COUPLED_H

enum {
	PATHS = 8,		/* siblings that are seen; further ones are not coupled */
	LEAST_WINDOW = 2,	/* segments; RFC 5681 has the same for ssthresh */
	WINDOW_BITS = 20,
	RTT_BITS = 24,
	SHARE_BITS = 30,
	GROWTH_BITS = 40,
	ACKED_BITS = 16,
};

/* A path whose window could not grow for this long, plus 4 RTTs, does not count (no acknowledgement
 * came, or it was recovering all the time): a silent one would hold the others back. Microseconds. */
#define SILENCE 1000000ULL

/* What siblings see of a subflow. Its own CPU writes it field by field while others read: a reader
 * may meet a window of this ACK with the RTT of the last, which is as good as either. */
struct path {
	__u64 owner;		/* 0: nobody */
	__u64 heard;		/* when its window could grow last, microseconds */
	__u64 run;		/* OLIA's: see run_on_ack() */
	__u32 window;		/* segments */
	__u32 rtt;		/* microseconds, 0: not known yet */
};

struct group {
	struct path path[PATHS];
};

struct sum {
	__u64 rates;		/* of all paths that count, in 2^-40 segments per microsecond, >> shift */
	__u32 shift;
	__u32 paths;
};

INLINE __u64 window_of(const struct path *p)
{
	return p->window > 1U << WINDOW_BITS ? 1U << WINDOW_BITS : p->window;
}

INLINE __u64 rtt_of(const struct path *p)
{
	return p->rtt > 1U << RTT_BITS ? 1U << RTT_BITS : p->rtt;
}

INLINE int counts(const struct path *p, __u64 now)
{
	__u64 silent = now > p->heard ? now - p->heard : 0;

	return p->owner && p->window && p->rtt && silent <= SILENCE + 4 * rtt_of(p);
}

/* x = w / rtt in 2^-40 segments per microsecond: 2^16 to 2^60, so that eight fit into 64 bits. What
 * rounding down takes is at most 2^-16 of it. */
INLINE __u64 rate_of(const struct path *p)
{
	return (window_of(p) << 40) / rtt_of(p);
}

/* What is CALLED is verified once, for any arguments: inlined, each of its loops would multiply what
 * the verifier has to walk. */
CALLED int add_up(const struct group *g, __u64 now, struct sum *s)
{
	if (!g || !s)
		return 0;
	s->rates = 0;
	s->shift = 0;
	s->paths = 0;
	for (int i = 0; i < PATHS; i++) {
		if (!counts(&g->path[i], now))
			continue;
		s->rates += rate_of(&g->path[i]);
		s->paths++;
	}
	/* Down to 34 bits, so that a rate << 30 fits; each step at least halves what is too much. */
	for (int bits = 16; bits; bits /= 2)
		if (s->rates >> (s->shift & 63) >> (33 + bits))
			s->shift += bits;
	s->rates >>= s->shift & 63;
	return 0;
}

INLINE struct sum sum_of(const struct group *g, __u64 now)
{
	struct sum s = {};

	add_up(g, now, &s);
	return s;
}

/* s_k in 2^-30, at most 1; to within 2^-29. The sum may be older than the path: hence the bound. */
INLINE __u64 share_of(const struct path *p, const struct sum *s)
{
	__u64 rate = rate_of(p) >> (s->shift & 63);

	return rate < s->rates ? (rate << SHARE_BITS) / s->rates : 1ULL << SHARE_BITS;
}

CALLED __u64 greatest_share(const struct group *g, const struct sum *s, __u64 now)
{
	__u64 greatest = 0;

	if (!g || !s)
		return 0;
	for (int i = 0; i < PATHS; i++) {
		if (!counts(&g->path[i], now))
			continue;
		__u64 share = share_of(&g->path[i], s);
		greatest = share > greatest ? share : greatest;
	}
	return greatest;
}

INLINE __s64 to_growth(__u64 value)
{
	return (__s64)(value >> (2 * SHARE_BITS - GROWTH_BITS));
}

INLINE __s64 growth_alone(__u32 window)
{
	return to_growth((1ULL << 2 * SHARE_BITS) / window);
}

INLINE __s64 reno_growth(const struct path *me)
{
	return growth_alone(window_of(me));
}

/* RFC 6356, section 3. */
INLINE __s64 lia_growth(const struct group *g, const struct path *me, __u64 now)
{
	struct sum s = sum_of(g, now);
	__u64 most = (1ULL << 2 * SHARE_BITS) / window_of(me);
	__u64 coupled = 0;

	if (s.paths < 2 || !counts(me, now))
		return to_growth(most);
	for (int i = 0; i < PATHS; i++) {
		const struct path *p = &g->path[i];

		if (!counts(p, now))
			continue;
		__u64 share = share_of(p, &s);
		__u64 one = share * share / window_of(p);
		coupled = one > coupled ? one : coupled;
	}
	return to_growth(coupled < most ? coupled : most);
}

/* OLIA's l_r is the greater of two: the bytes acknowledged between the last two losses, and those
 * since the last one. What is passed are bytes acknowledged so far, and at the last loss. */
INLINE __u64 run_on_ack(__u64 run, __u64 acked, __u64 lost_at)
{
	__u64 since = acked - lost_at;

	return since > run ? since : run;
}

/* What has ended with this loss stands until the next one, or until more has come since. */
INLINE __u64 run_after_loss(__u64 acked, __u64 *lost_at)
{
	__u64 between = acked - *lost_at;

	*lost_at = acked;
	return between;
}

/* amount / rtt^2 as a number that compares: 8 bits of exponent above 56 of mantissa. */
CALLED __u64 quality(__u64 amount, __u64 rtt)
{
	__u32 exponent = 192;

	if (!amount)
		return 0;
	if (amount >> 63)
		amount = (1ULL << 63) - 1;
	for (int division = 0;; division++) {
		for (int bits = 32; bits; bits /= 2)
			if (!(amount >> (63 - bits))) {
				amount <<= bits;
				exponent -= bits;
			}
		if (division == 2)
			return (__u64)exponent << 56 | (amount >> 7 & ((1ULL << 56) - 1));
		amount /= rtt;
	}
}

/* What tells OLIA's paths apart is the bytes between losses over rtt^2, which is the square of the
 * rate that TCP's formula gives them, and the window. */
CALLED __u64 best_quality(const struct group *g, __u64 now)
{
	__u64 best = 0;

	if (!g)
		return 0;
	for (int i = 0; i < PATHS; i++) {
		const struct path *p = &g->path[i];

		if (!counts(p, now))
			continue;
		__u64 q = quality(p->run, rtt_of(p));
		best = q > best ? q : best;
	}
	return best;
}

CALLED __u64 widest_window(const struct group *g, __u64 now)
{
	__u64 widest = 0;

	if (!g)
		return 0;
	for (int i = 0; i < PATHS; i++)
		if (counts(&g->path[i], now) && window_of(&g->path[i]) > widest)
			widest = window_of(&g->path[i]);
	return widest;
}

/* How many paths have the widest window, and above 2^32 how many of the best have not. */
CALLED __u64 wide_and_collected(const struct group *g, __u64 now, __u64 best, __u64 widest)
{
	__u64 found = 0;

	if (!g)
		return 0;
	for (int i = 0; i < PATHS; i++) {
		const struct path *p = &g->path[i];

		if (!counts(p, now))
			continue;
		if (window_of(p) == widest)
			found += 1;
		else if (quality(p->run, rtt_of(p)) == best)
			found += 1ULL << 32;
	}
	return found;
}

/* Khalili et al. */
INLINE __s64 olia_growth(const struct group *g, const struct path *me, __u64 now)
{
	struct sum s = sum_of(g, now);
	__u64 best, widest, sets, own, plus, minus = 0;
	__u32 wide, collected;

	if (s.paths < 2 || !counts(me, now))
		return reno_growth(me);
	best = best_quality(g, now);
	widest = widest_window(g, now);
	sets = wide_and_collected(g, now, best, widest);
	wide = (__u32)sets;
	collected = sets >> 32;
	own = share_of(me, &s);
	plus = own * own;
	if (collected && wide && window_of(me) == widest)
		minus = (1ULL << 2 * SHARE_BITS) / (s.paths * wide);
	else if (collected && quality(me->run, rtt_of(me)) == best)
		plus += (1ULL << 2 * SHARE_BITS) / (s.paths * collected);
	if (plus >= minus)
		return to_growth((plus - minus) / window_of(me));
	return -to_growth((minus - plus) / window_of(me));
}

/* Peng et al. */
INLINE __s64 balia_growth(const struct group *g, const struct path *me, __u64 now)
{
	struct sum s = sum_of(g, now);
	__u64 own, greatest;

	if (s.paths < 2 || !counts(me, now))
		return reno_growth(me);
	own = share_of(me, &s);
	greatest = greatest_share(g, &s, now);
	/* At most 2 x 5 x 2^60, which fits. */
	return to_growth((own + greatest) * (4 * own + greatest) / (10 * window_of(me)));
}

INLINE __u32 at_least(__u64 window)
{
	return window > LEAST_WINDOW ? window : LEAST_WINDOW;
}

/* The window after a loss: half of it, rounded down. */
INLINE __u32 halved(__u32 window)
{
	return at_least(window / 2);
}

/* BALIA takes 1/2 where the path is the fastest, up to 3/4 where it is not; rounded down. */
INLINE __u32 balia_after_loss(const struct group *g, const struct path *me, __u32 window, __u64 now)
{
	struct sum s = sum_of(g, now);
	__u64 own, greatest, w = window > 1U << WINDOW_BITS ? 1U << WINDOW_BITS : window;

	if (s.paths < 2 || !counts(me, now))
		return halved(window);
	own = share_of(me, &s);
	greatest = greatest_share(g, &s, now);
	if (2 * greatest >= 3 * own)
		return at_least(w / 4);
	return at_least(w - (w * greatest + 2 * own - 1) / (2 * own));
}

/* Adds `acked` times the growth to what has been saved up of segments (2^-40, less than one either
 * way) and gives the window that comes of it. */
INLINE __u32 grown(__s64 *saved, __u32 window, __s64 growth, __u32 acked)
{
	__u64 whole;

	/* |growth| < 2^41: at most 1.5 / w for OLIA, else 1 / w. */
	*saved += growth * (__s64)(acked < 1U << ACKED_BITS ? acked : 1U << ACKED_BITS);
	if (*saved >= 0) {
		whole = (__u64)*saved >> GROWTH_BITS;
		*saved -= (__s64)(whole << GROWTH_BITS);
		return window + whole;
	}
	whole = (__u64)-*saved >> GROWTH_BITS;
	*saved += (__s64)(whole << GROWTH_BITS);
	if (!whole)
		return window;
	return window > LEAST_WINDOW + whole ? window - whole : LEAST_WINDOW;
}

/* The slow-start threshold that goes with a window that coupling has set. A window that shrinks below
 * it would be in slow start, and the next ACK would take the shrinking back. */
INLINE __u32 threshold_of(__u32 threshold, __u32 window)
{
	return window < threshold ? window : threshold;
}

#endif
