/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* OLIA (Khalili et al., 2012): LIA's aim, with the windows moved towards the paths that lose least. */
#define SOCKETS olia_sockets
#define MEMBERS olia_members
#define GROUPS olia_groups
#include "subflow.h"

SEC("struct_ops/olia_ssthresh")
__u32 olia_ssthresh(__u64 *argument)
{
	return on_loss((struct sock *)argument[0], halves);
}

SEC("struct_ops/olia_cong_avoid")
void olia_cong_avoid(__u64 *argument)
{
	on_ack((struct sock *)argument[0], argument[2], olia_growth);
}

SEC("struct_ops/olia_set_state")
void olia_set_state(__u64 *argument)
{
	on_state((struct sock *)argument[0], argument[1]);
}

SEC("struct_ops/olia_undo_cwnd")
__u32 olia_undo_cwnd(__u64 *argument)
{
	return on_undo((struct sock *)argument[0]);
}

SEC("struct_ops/olia_release")
void olia_release(__u64 *argument)
{
	on_release((struct sock *)argument[0]);
}

SEC(".struct_ops")
struct tcp_congestion_ops sumrate_olia = {
	.ssthresh = (void *)olia_ssthresh,
	.cong_avoid = (void *)olia_cong_avoid,
	.set_state = (void *)olia_set_state,
	.undo_cwnd = (void *)olia_undo_cwnd,
	.release = (void *)olia_release,
	.flags = MAY_BE_CHOSEN_BY_ALL,
	.name = "sumrate_olia",
};
