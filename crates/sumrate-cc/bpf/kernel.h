/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* What these programs use of the kernel, written down instead of generated from one kernel's BTF:
 * libbpf finds each field by its name in the running kernel (CO-RE), so the layouts here need not be
 * the kernel's, and clang alone builds them. */
#ifndef SUMRATE_KERNEL_H
#define SUMRATE_KERNEL_H

typedef unsigned char __u8;
typedef unsigned short __u16;
typedef unsigned int __u32;
typedef unsigned long long __u64;
typedef int __s32;
typedef long long __s64;
typedef _Bool bool;

#define NULL ((void *)0)
#define SEC(name) __attribute__((section(name), used))
#define INLINE static inline __attribute__((always_inline))
#define CALLED __attribute__((noinline))
#define KSYM __attribute__((section(".ksyms")))

/* BTF-defined maps: a number is an array's length, a type is a pointer. */
#define NUMBER(name, value) int(*name)[value]
#define TYPE(name, value) value *name

/* linux/bpf.h */
enum {
	MAP_TYPE_HASH = 1,
	MAP_TYPE_SK_STORAGE = 24,
	NO_PREALLOC = 1,	/* BPF_F_NO_PREALLOC */
	IF_ABSENT = 1,		/* BPF_NOEXIST */
	CREATE = 1,		/* BPF_SK_STORAGE_GET_F_CREATE */
};

/* net/tcp.h */
enum { MAY_BE_CHOSEN_BY_ALL = 1 /* TCP_CONG_NON_RESTRICTED */ };

/* Helpers, by their numbers in linux/bpf.h. */
static void *(*bpf_map_lookup_elem)(void *map, const void *key) = (void *)1;
static long (*bpf_map_update_elem)(void *map, const void *key, const void *value,
				   __u64 flags) = (void *)2;
static long (*bpf_map_delete_elem)(void *map, const void *key) = (void *)3;
static void *(*bpf_sk_storage_get)(void *map, void *socket, void *value, __u64 flags) = (void *)107;

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct sock {
	__u8 unused;
};

struct inet_connection_sock {
	void *icsk_ulp_data;
};

struct tcp_sock {
	__u32 snd_cwnd;			/* segments */
	__u32 snd_cwnd_clamp;		/* segments */
	__u32 snd_ssthresh;		/* segments */
	__u32 prior_cwnd;		/* segments, before the last loss */
	__u32 srtt_us;			/* 8 x smoothed RTT in microseconds */
	__u32 max_packets_out;		/* segments, in the last window */
	__u64 bytes_acked;
	__u64 tcp_mstamp;		/* microseconds, one clock for all sockets; set by every segment */
	__u8 is_cwnd_limited : 1;
	bool is_mptcp;
};

struct mptcp_subflow_context {
	struct sock *conn;
};

struct mptcp_sock {
	__u32 token;
};

struct tcp_congestion_ops {
	__u32 (*ssthresh)(struct sock *sk);
	void (*cong_avoid)(struct sock *sk, __u32 ack, __u32 acked);
	void (*set_state)(struct sock *sk, __u8 state);
	__u32 (*undo_cwnd)(struct sock *sk);
	void (*release)(struct sock *sk);
	__u32 flags;
	char name[16];
};

#pragma clang attribute pop

extern __u32 tcp_slow_start(struct tcp_sock *tp, __u32 acked) KSYM;
extern void *bpf_rdonly_cast(const void *object, __u32 type_id) KSYM __attribute__((weak));

/* Which facts libbpf fills in: see BPF_FIELD_* and BPF_TYPE_* of its bpf_core_read.h. */
enum { FIELD_OFFSET = 0, FIELD_SIZE = 1, FIELD_EXISTS = 2, FIELD_LEFT = 4, FIELD_RIGHT = 5 };
enum { TYPE_EXISTS = 0, TYPE_ID_IN_KERNEL = 1 };

#define HAS_FIELD(field) __builtin_preserve_field_info(field, FIELD_EXISTS)
#define HAS_TYPE(type) __builtin_preserve_type_info(*(type *)0, TYPE_EXISTS)
#define KERNEL_TYPE(type) __builtin_btf_type_id(*(type *)0, TYPE_ID_IN_KERNEL)

/* A bit field, which is where it is in the running kernel: it cannot be read by its name. */
#define BIT_FIELD(object, field)                                                                  \
	({                                                                                        \
		const void *at = (const char *)(object) +                                         \
				 __builtin_preserve_field_info((object)->field, FIELD_OFFSET);    \
		__u64 bits = 0;                                                                   \
		switch (__builtin_preserve_field_info((object)->field, FIELD_SIZE)) {             \
		case 1: bits = *(const __u8 *)at; break;                                          \
		case 2: bits = *(const __u16 *)at; break;                                         \
		case 4: bits = *(const __u32 *)at; break;                                         \
		case 8: bits = *(const __u64 *)at; break;                                         \
		}                                                                                 \
		bits <<= __builtin_preserve_field_info((object)->field, FIELD_LEFT);              \
		bits >> __builtin_preserve_field_info((object)->field, FIELD_RIGHT);              \
	})

#endif
