/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* What every coupled algorithm does around its formula: finds the siblings of a subflow, tells them
 * of it, and leaves slow start, recovery and undo to TCP.
 *
 * A subflow's group is, in this order,
 *   1. what a process with the map's descriptor said of this socket (Sumrate says its session);
 *   2. the token of the kernel's own MPTCP connection, which is unique on this host;
 *   3. none: then the socket is alone and grows as Reno does.
 * Nobody without the map's descriptor can bring a socket into somebody else's group. */
#ifndef SUMRATE_SUBFLOW_H
#define SUMRATE_SUBFLOW_H

#include "kernel.h"
#include "coupled.h"

#define BY_PROCESS (1ULL << 60)
#define BY_TOKEN (2ULL << 60)
#define NAME_BITS ((1ULL << 60) - 1)

/* linux/tcp.h: TCP_CA_CWR, TCP_CA_Recovery */
enum { CWR = 2, RECOVERY = 3 };

/* A subflow's own memory. */
struct member {
	__u64 group;		/* 0: none yet */
	__u64 owner;		/* what it is called in its group */
	__u64 lost_at;		/* bytes acknowledged when the last loss was seen */
	__s64 saved;		/* see grown() */
	__u32 slot;
	__u32 unused;
};

/* Processes write: group by socket. */
struct {
	NUMBER(type, MAP_TYPE_SK_STORAGE);
	NUMBER(map_flags, NO_PREALLOC);
	TYPE(key, int);
	TYPE(value, __u64);
} SOCKETS SEC(".maps");

struct {
	NUMBER(type, MAP_TYPE_SK_STORAGE);
	NUMBER(map_flags, NO_PREALLOC);
	TYPE(key, int);
	TYPE(value, struct member);
} MEMBERS SEC(".maps");

/* When it is full, further connections are not coupled. */
struct {
	NUMBER(type, MAP_TYPE_HASH);
	NUMBER(map_flags, NO_PREALLOC);
	NUMBER(max_entries, 65536);
	TYPE(key, __u64);
	TYPE(value, struct group);
} GROUPS SEC(".maps");

/* Owners are numbered, so that no kernel address stands in a map. */
__u64 last_owner = 0;

INLINE struct tcp_sock *tcp(struct sock *sk)
{
	return (struct tcp_sock *)sk;
}

INLINE __u64 token_of(struct sock *sk)
{
	struct mptcp_subflow_context *context;
	struct mptcp_sock *connection;
	void *data;

	if (!HAS_TYPE(struct mptcp_sock) || !HAS_FIELD(tcp(sk)->is_mptcp) || !bpf_rdonly_cast)
		return 0;
	if (!tcp(sk)->is_mptcp)
		return 0;
	data = ((struct inet_connection_sock *)sk)->icsk_ulp_data;
	if (!data)
		return 0;
	context = bpf_rdonly_cast(data, KERNEL_TYPE(struct mptcp_subflow_context));
	connection = bpf_rdonly_cast(context->conn, KERNEL_TYPE(struct mptcp_sock));
	return connection->token;
}

INLINE __u64 group_of(struct sock *sk)
{
	__u64 *said = bpf_sk_storage_get(&SOCKETS, sk, NULL, 0);
	__u64 token;

	if (said && *said & NAME_BITS)
		return BY_PROCESS | (*said & NAME_BITS);
	token = token_of(sk);
	return token ? BY_TOKEN | token : 0;
}

/* The group's entry; made if it is not there. */
INLINE struct group *joined(__u64 key)
{
	static const struct group nobody;
	struct group *g = bpf_map_lookup_elem(&GROUPS, &key);

	if (g)
		return g;
	bpf_map_update_elem(&GROUPS, &key, &nobody, IF_ABSENT);
	return bpf_map_lookup_elem(&GROUPS, &key);
}

/* The subflow's place in its group. The entry may have been deleted by the last sibling that left
 * just as this one came: then the place is taken anew at the next ACK. */
INLINE struct path *place(struct group *g, struct member *m)
{
	if (m->slot < PATHS && m->owner && g->path[m->slot].owner == m->owner)
		return &g->path[m->slot];
	if (!m->owner)
		m->owner = __sync_fetch_and_add(&last_owner, 1) + 1;
	for (__u32 i = 0; i < PATHS; i++) {
		struct path *p = &g->path[i];

		if (!p->owner && __sync_val_compare_and_swap(&p->owner, 0, m->owner) == 0) {
			m->slot = i;
			p->run = 0;
			return p;
		}
	}
	return NULL;
}

INLINE void tell(struct sock *sk, struct path *me, const struct member *m)
{
	me->window = tcp(sk)->snd_cwnd;
	me->rtt = tcp(sk)->srtt_us >> 3;
	me->run = run_on_ack(me->run, tcp(sk)->bytes_acked, m->lost_at);
	me->heard = tcp(sk)->tcp_mstamp;
}

INLINE struct member *member_of(struct sock *sk, __u64 flags)
{
	return bpf_sk_storage_get(&MEMBERS, sk, NULL, flags);
}

/* The group and the subflow's place in it, if it has them. */
INLINE struct path *found(struct sock *sk, struct member *m, struct group **g)
{
	if (!m->group)
		m->group = group_of(sk);
	if (!m->group)
		return NULL;
	*g = joined(m->group);
	return *g ? place(*g, m) : NULL;
}

typedef __s64 (*growth_fn)(const struct group *g, const struct path *me, __u64 now);
typedef __u32 (*loss_fn)(const struct group *g, const struct path *me, __u32 window, __u64 now);

/* tcp_cong_avoid: `acked` segments were acknowledged outside recovery. */
INLINE void on_ack(struct sock *sk, __u32 acked, growth_fn growth)
{
	struct tcp_sock *tp = tcp(sk);
	struct member *m = member_of(sk, CREATE);
	struct path *me = NULL;
	struct group *g = NULL;
	bool slow_start = tp->snd_cwnd < tp->snd_ssthresh;
	__u32 window;
	__s64 per_segment;

	if (!m)
		return;
	me = found(sk, m, &g);
	if (me)
		tell(sk, me, m);
	/* A window that is not used does not grow (RFC 7661); in slow start it may be twice as large
	 * as what was used. */
	if (!BIT_FIELD(tp, is_cwnd_limited) &&
	    !(slow_start && tp->snd_cwnd < 2 * tp->max_packets_out))
		return;
	if (slow_start) {	/* RFC 6356: not coupled */
		acked = tcp_slow_start(tp, acked);
		if (!acked)
			return;
	}
	window = tp->snd_cwnd;
	/* Read here: one instruction must not read it from a socket and from a map. */
	asm volatile("" : "+r"(window));
	per_segment = me && g ? growth(g, me, tp->tcp_mstamp) : growth_alone(window);
	window = grown(&m->saved, window, per_segment, acked);
	tp->snd_cwnd = window < tp->snd_cwnd_clamp ? window : tp->snd_cwnd_clamp;
	if (per_segment < 0)	/* OLIA's epsilon */
		tp->snd_ssthresh = threshold_of(tp->snd_ssthresh, window);
}

/* ssthresh: a loss or a congestion mark. Siblings see the smaller window at once. */
INLINE __u32 on_loss(struct sock *sk, loss_fn after)
{
	struct tcp_sock *tp = tcp(sk);
	struct member *m = member_of(sk, 0);
	struct group *g = NULL;
	struct path *me;
	__u32 window;

	if (!m)
		return halved(tp->snd_cwnd);
	me = found(sk, m, &g);
	m->saved = 0;
	if (!me || !g) {
		m->lost_at = tp->bytes_acked;
		return halved(tp->snd_cwnd);
	}
	window = after(g, me, tp->snd_cwnd, tp->tcp_mstamp);
	me->run = run_after_loss(tp->bytes_acked, &m->lost_at);
	me->window = window;
	return window;
}

/* set_state: recovery, loss and their end change the window without an ACK that we are told of.
 * Recovery and CWR begin with the window of before the loss, which TCP then brings down to ssthresh
 * ACK by ACK: siblings see from the start where it goes to. When a state ends, the window that TCP
 * has chosen is there, or is with the ACK that ends it. */
INLINE void on_state(struct sock *sk, __u8 state)
{
	struct tcp_sock *tp = tcp(sk);
	struct member *m = member_of(sk, 0);
	__u32 window = tp->snd_cwnd;
	struct group *g;

	if (!m || !m->group)
		return;
	if ((state == CWR || state == RECOVERY) && tp->snd_ssthresh < window)
		window = tp->snd_ssthresh;
	g = bpf_map_lookup_elem(&GROUPS, &m->group);
	if (g && m->slot < PATHS && g->path[m->slot].owner == m->owner)
		g->path[m->slot].window = window;
}

/* undo_cwnd: there was no loss after all. */
INLINE __u32 on_undo(struct sock *sk)
{
	struct tcp_sock *tp = tcp(sk);

	return tp->snd_cwnd > tp->prior_cwnd ? tp->snd_cwnd : tp->prior_cwnd;
}

/* release: the socket closes, or takes another algorithm. The last one out deletes the group. */
INLINE void on_release(struct sock *sk)
{
	struct member *m = member_of(sk, 0);
	struct group *g;

	if (!m || !m->group)
		return;
	g = bpf_map_lookup_elem(&GROUPS, &m->group);
	if (!g)
		return;
	if (m->slot < PATHS && g->path[m->slot].owner == m->owner) {
		g->path[m->slot].window = 0;
		g->path[m->slot].owner = 0;
	}
	for (int i = 0; i < PATHS; i++)
		if (g->path[i].owner)
			return;
	bpf_map_delete_elem(&GROUPS, &m->group);
}

INLINE __u32 halves(const struct group *g, const struct path *me, __u32 window, __u64 now)
{
	return halved(window);
}

char licence[] SEC("license") = "Dual MIT/GPL";

#endif
