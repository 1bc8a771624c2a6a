/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* BALIA (Peng et al., 2016): between LIA's friendliness and OLIA's responsiveness; a slow path loses more
 * than half of its window. */
#define SOCKETS balia_sockets
#define MEMBERS balia_members
#define GROUPS balia_groups
#include "subflow.h"

SEC("struct_ops/balia_ssthresh")
__u32 balia_ssthresh(__u64 *argument)
{
	return on_loss((struct sock *)argument[0], balia_after_loss);
}

SEC("struct_ops/balia_cong_avoid")
void balia_cong_avoid(__u64 *argument)
{
	on_ack((struct sock *)argument[0], argument[2], balia_growth);
}

SEC("struct_ops/balia_set_state")
void balia_set_state(__u64 *argument)
{
	on_state((struct sock *)argument[0], argument[1]);
}

SEC("struct_ops/balia_undo_cwnd")
__u32 balia_undo_cwnd(__u64 *argument)
{
	return on_undo((struct sock *)argument[0]);
}

SEC("struct_ops/balia_release")
void balia_release(__u64 *argument)
{
	on_release((struct sock *)argument[0]);
}

SEC(".struct_ops")
struct tcp_congestion_ops sumrate_balia = {
	.ssthresh = (void *)balia_ssthresh,
	.cong_avoid = (void *)balia_cong_avoid,
	.set_state = (void *)balia_set_state,
	.undo_cwnd = (void *)balia_undo_cwnd,
	.release = (void *)balia_release,
	.flags = MAY_BE_CHOSEN_BY_ALL,
	.name = "sumrate_balia",
};
