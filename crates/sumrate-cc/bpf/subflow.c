/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* subflow.h for user space, where a test calls it in the kernel's order. Instead of kernel.h stands
 * here what it uses of that: sockets have what the maps would have of them, and a group's name is
 * its address. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SUMRATE_KERNEL_H
typedef uint8_t __u8;
typedef uint32_t __u32;
typedef uint64_t __u64;
typedef int64_t __s64;
#define SEC(name)
#define INLINE static inline
#define CALLED static inline
#define NUMBER(name, value) int(*name)[value]
#define TYPE(name, value) value *name
enum { MAP_TYPE_HASH, MAP_TYPE_SK_STORAGE, NO_PREALLOC, IF_ABSENT = 1, CREATE = 1 };

struct sock;

struct tcp_sock {
	__u64 bytes_acked;
	__u64 tcp_mstamp;
	__u32 snd_cwnd;
	__u32 snd_cwnd_clamp;
	__u32 snd_ssthresh;
	__u32 prior_cwnd;
	__u32 srtt_us;
	__u32 max_packets_out;
	__u32 is_cwnd_limited;
	__u32 is_mptcp;
};

/* Nothing here is kernel MPTCP. */
struct inet_connection_sock {
	void *icsk_ulp_data;
};
struct mptcp_subflow_context {
	struct sock *conn;
};
struct mptcp_sock {
	__u32 token;
};
#define HAS_TYPE(type) 0
#define HAS_FIELD(field) 0
#define KERNEL_TYPE(type) 0
#define BIT_FIELD(object, field) ((object)->field)
static void *(*bpf_rdonly_cast)(const void *object, __u32 type_id);

static void *bpf_sk_storage_get(void *map, struct sock *sk, void *value, __u64 flags);
static void *bpf_map_lookup_elem(void *map, const void *key);

static long bpf_map_update_elem(void *map, const void *key, const void *value, __u64 flags)
{
	return 0;
}

static long bpf_map_delete_elem(void *map, const void *key)
{
	return 0;
}

static __u32 tcp_slow_start(struct tcp_sock *tp, __u32 acked)
{
	__u32 room = tp->snd_ssthresh - tp->snd_cwnd;

	tp->snd_cwnd += acked < room ? acked : room;
	return acked < room ? 0 : acked - room;
}

#define SOCKETS sumrate_sockets
#define MEMBERS sumrate_members
#define GROUPS sumrate_groups
#define last_owner sumrate_last_owner
#define licence sumrate_licence
#include "subflow.h"

/* A socket, and what it has in the maps. */
struct subflow {
	struct tcp_sock tcp;
	struct group *group;
	struct member member;
};

static void *bpf_sk_storage_get(void *map, struct sock *sk, void *value, __u64 flags)
{
	struct subflow *s = (struct subflow *)sk;

	return map == (void *)&SOCKETS ? (void *)&s->group : (void *)&s->member;
}

static void *bpf_map_lookup_elem(void *map, const void *key)
{
	return (void *)(uintptr_t)(*(const __u64 *)key & NAME_BITS);
}

_Static_assert(sizeof(struct subflow) == 48 + 8 + 40, "the test has the same layout");

void sumrate_subflow_acked(struct subflow *s, uint32_t segments)
{
	on_ack((struct sock *)s, segments, lia_growth);
}

uint32_t sumrate_subflow_lost(struct subflow *s)
{
	return on_loss((struct sock *)s, halves);
}

void sumrate_subflow_state(struct subflow *s, uint8_t state)
{
	on_state((struct sock *)s, state);
}

uint32_t sumrate_subflow_undone(struct subflow *s)
{
	return on_undo((struct sock *)s);
}

void sumrate_subflow_released(struct subflow *s)
{
	on_release((struct sock *)s);
}
