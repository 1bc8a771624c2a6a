/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* LIA (RFC 6356): together the subflows take what one TCP would on the best of their paths. */
#define SOCKETS lia_sockets
#define MEMBERS lia_members
#define GROUPS lia_groups
#include "subflow.h"

SEC("struct_ops/lia_ssthresh")
__u32 lia_ssthresh(__u64 *argument)
{
	return on_loss((struct sock *)argument[0], halves);
}

SEC("struct_ops/lia_cong_avoid")
void lia_cong_avoid(__u64 *argument)
{
	on_ack((struct sock *)argument[0], argument[2], lia_growth);
}

SEC("struct_ops/lia_set_state")
void lia_set_state(__u64 *argument)
{
	on_state((struct sock *)argument[0], argument[1]);
}

SEC("struct_ops/lia_undo_cwnd")
__u32 lia_undo_cwnd(__u64 *argument)
{
	return on_undo((struct sock *)argument[0]);
}

SEC("struct_ops/lia_release")
void lia_release(__u64 *argument)
{
	on_release((struct sock *)argument[0]);
}

SEC(".struct_ops")
struct tcp_congestion_ops sumrate_lia = {
	.ssthresh = (void *)lia_ssthresh,
	.cong_avoid = (void *)lia_cong_avoid,
	.set_state = (void *)lia_set_state,
	.undo_cwnd = (void *)lia_undo_cwnd,
	.release = (void *)lia_release,
	.flags = MAY_BE_CHOSEN_BY_ALL,
	.name = "sumrate_lia",
};
