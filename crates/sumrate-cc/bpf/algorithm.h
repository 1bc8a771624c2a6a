/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* One algorithm as the kernel takes it: its maps, its programs and its registration. A file defines
 * NAME and includes this; the compiler is told BUILD, a number of these sources, which the maps'
 * names have: what another build loaded is not taken for this one's. A map's name has 15 characters
 * at most. */
#ifndef SUMRATE_ALGORITHM_H
#define SUMRATE_ALGORITHM_H

#define PASTED(a, b) a##b
#define PASTE(a, b) PASTED(a, b)
#define QUOTED(a) #a
#define QUOTE(a) QUOTED(a)

#define SOCKETS PASTE(PASTE(NAME, _s_), BUILD)
#define MEMBERS PASTE(PASTE(NAME, _m_), BUILD)
#define GROUPS PASTE(PASTE(NAME, _g_), BUILD)
#include "subflow.h"

#define PROGRAM(type, function) \
	SEC("struct_ops/" QUOTE(PASTE(NAME, function))) \
	type PASTE(NAME, function)(__u64 *argument)

/* How its windows grow, and what a loss leaves of them. */
#define ALGORITHM(growth, after_loss) \
	PROGRAM(__u32, _ssthresh) \
	{ \
		return on_loss((struct sock *)argument[0], after_loss); \
	} \
	PROGRAM(void, _cong_avoid) \
	{ \
		on_ack((struct sock *)argument[0], argument[2], growth); \
	} \
	PROGRAM(void, _set_state) \
	{ \
		on_state((struct sock *)argument[0], argument[1]); \
	} \
	PROGRAM(__u32, _undo_cwnd) \
	{ \
		return on_undo((struct sock *)argument[0]); \
	} \
	PROGRAM(void, _release) \
	{ \
		on_release((struct sock *)argument[0]); \
	} \
	SEC(".struct_ops") \
	struct tcp_congestion_ops PASTE(sumrate_, NAME) = { \
		.ssthresh = (void *)PASTE(NAME, _ssthresh), \
		.cong_avoid = (void *)PASTE(NAME, _cong_avoid), \
		.set_state = (void *)PASTE(NAME, _set_state), \
		.undo_cwnd = (void *)PASTE(NAME, _undo_cwnd), \
		.release = (void *)PASTE(NAME, _release), \
		.flags = MAY_BE_CHOSEN_BY_ALL, \
		.name = QUOTE(PASTE(sumrate_, NAME)), \
	}

#endif
