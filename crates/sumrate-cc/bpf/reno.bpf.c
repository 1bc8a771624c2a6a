/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Reno for each subflow on its own, in the same programs and the same arithmetic: what is left of
 * the coupled ones when nothing is coupled, for comparison. */
#define SOCKETS reno_sockets
#define MEMBERS reno_members
#define GROUPS reno_groups
#include "subflow.h"

INLINE __s64 uncoupled(const struct group *g, const struct path *me, __u64 now)
{
	return reno_growth(me);
}

SEC("struct_ops/reno_ssthresh")
__u32 reno_ssthresh(__u64 *argument)
{
	return on_loss((struct sock *)argument[0], halves);
}

SEC("struct_ops/reno_cong_avoid")
void reno_cong_avoid(__u64 *argument)
{
	on_ack((struct sock *)argument[0], argument[2], uncoupled);
}

SEC("struct_ops/reno_set_state")
void reno_set_state(__u64 *argument)
{
	on_state((struct sock *)argument[0], argument[1]);
}

SEC("struct_ops/reno_undo_cwnd")
__u32 reno_undo_cwnd(__u64 *argument)
{
	return on_undo((struct sock *)argument[0]);
}

SEC("struct_ops/reno_release")
void reno_release(__u64 *argument)
{
	on_release((struct sock *)argument[0]);
}

SEC(".struct_ops")
struct tcp_congestion_ops sumrate_reno = {
	.ssthresh = (void *)reno_ssthresh,
	.cong_avoid = (void *)reno_cong_avoid,
	.set_state = (void *)reno_set_state,
	.undo_cwnd = (void *)reno_undo_cwnd,
	.release = (void *)reno_release,
	.flags = MAY_BE_CHOSEN_BY_ALL,
	.name = "sumrate_reno",
};
