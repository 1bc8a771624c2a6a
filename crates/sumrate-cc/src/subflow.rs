//! `bpf/subflow.h`, compiled for user space and called in the kernel's order (`net/ipv4/tcp_input.c`):
//! what siblings see of a subflow that loses.
#![allow(unsafe_code)]

use crate::arithmetic::Group;

/// TCP_CA_*.
const OPEN: u8 = 0;
const CWR: u8 = 2;
const RECOVERY: u8 = 3;
const LOSS: u8 = 4;

/// `struct tcp_sock` of `bpf/subflow.c`.
#[repr(C)]
#[derive(Default)]
struct Tcp {
    bytes_acked: u64,
    mstamp: u64,
    cwnd: u32,
    clamp: u32,
    ssthresh: u32,
    prior_cwnd: u32,
    /// 8 times of it, in microseconds.
    srtt: u32,
    max_packets_out: u32,
    cwnd_limited: u32,
    mptcp: u32,
}

/// `struct subflow` there.
#[repr(C)]
struct Subflow {
    tcp: Tcp,
    group: *mut Group,
    member: [u64; 5],
}

unsafe extern "C" {
    fn sumrate_subflow_acked(subflow: *mut Subflow, segments: u32);
    fn sumrate_subflow_lost(subflow: *mut Subflow) -> u32;
    fn sumrate_subflow_state(subflow: *mut Subflow, state: u8);
    fn sumrate_subflow_undone(subflow: *mut Subflow) -> u32;
    fn sumrate_subflow_released(subflow: *mut Subflow);
}

/// Two subflows of LIA with equal windows and RTTs, in congestion avoidance.
struct Pair {
    group: *mut Group,
    subflows: [Subflow; 2],
}

impl Pair {
    fn of_windows(window: u32) -> Self {
        let group = Box::into_raw(Box::<Group>::default());
        let subflows = [(); 2].map(|()| Subflow {
            tcp: Tcp {
                mstamp: 1_000_000,
                cwnd: window,
                clamp: u32::MAX,
                ssthresh: 2,
                srtt: 8 * 20_000,
                cwnd_limited: 1,
                ..Tcp::default()
            },
            group,
            member: [0; 5],
        });
        let mut pair = Self { group, subflows };
        pair.acked(0, 1);
        pair.acked(1, 1);
        pair
    }

    fn tcp(&mut self, which: usize) -> &mut Tcp {
        &mut self.subflows[which].tcp
    }

    /// What siblings see of the first one; it came first and has the first place.
    fn seen(&self) -> u32 {
        // SAFETY: the group lives as long as the pair, and nobody else writes to it.
        unsafe { (*self.group).path[0].window }
    }

    /// tcp_cong_avoid.
    fn acked(&mut self, which: usize, segments: u32) {
        // SAFETY: the subflow and its group are valid for the call.
        unsafe { sumrate_subflow_acked(&raw mut self.subflows[which], segments) }
    }

    /// tcp_set_ca_state.
    fn enters(&mut self, state: u8) {
        // SAFETY: as above.
        unsafe { sumrate_subflow_state(&raw mut self.subflows[0], state) }
    }

    /// tcp_init_cwnd_reduction, and the state in which the window goes down: tcp_enter_recovery and
    /// tcp_enter_cwr.
    fn reduces_in(&mut self, state: u8) {
        self.tcp(0).prior_cwnd = self.tcp(0).cwnd;
        // SAFETY: as above.
        self.tcp(0).ssthresh = unsafe { sumrate_subflow_lost(&raw mut self.subflows[0]) };
        self.enters(state);
    }

    /// tcp_undo_cwnd_reduction, and the end of the state.
    fn undoes(&mut self) {
        // SAFETY: as above.
        self.tcp(0).cwnd = unsafe { sumrate_subflow_undone(&raw mut self.subflows[0]) };
        self.enters(OPEN);
    }
}

impl Drop for Pair {
    fn drop(&mut self) {
        for subflow in &mut self.subflows {
            // SAFETY: as above.
            unsafe { sumrate_subflow_released(subflow) };
        }
        // SAFETY: it came from a box, and nobody uses it any more.
        let group = unsafe { Box::from_raw(self.group) };
        assert!(group.path.iter().all(|path| path.owner == 0), "a place is kept");
    }
}

#[test]
fn siblings_see_the_smaller_window_from_the_loss_on() {
    for state in [RECOVERY, CWR] {
        let mut pair = Pair::of_windows(100);
        assert_eq!(pair.seen(), 100);
        pair.reduces_in(state);
        assert_eq!(pair.tcp(0).cwnd, 100, "the kernel has not begun to reduce it");
        assert_eq!(pair.seen(), 50, "state {state}");
        // Beside 50 segments LIA's growth is (2/3)^2 / 100, one in 225; beside 100 one in 400.
        pair.acked(1, 230);
        assert_eq!(pair.tcp(1).cwnd, 101, "state {state}");
    }
}

#[test]
fn a_window_below_the_threshold_is_seen_as_it_is() {
    let mut pair = Pair::of_windows(100);
    pair.reduces_in(CWR);
    // A loss meanwhile reduces nothing more, and what is on the way may have drained.
    pair.tcp(0).cwnd = 7;
    pair.enters(RECOVERY);
    assert_eq!(pair.seen(), 7);
    // A timeout leaves what is on its way, and a segment, before the state.
    pair.tcp(0).cwnd = 1;
    pair.enters(LOSS);
    assert_eq!(pair.seen(), 1);
}

#[test]
fn siblings_see_the_window_that_is_left_when_recovery_ends() {
    let mut pair = Pair::of_windows(100);
    pair.reduces_in(RECOVERY);
    // tcp_try_undo_recovery opens before tcp_end_cwnd_reduction; then the same ACK is told.
    pair.tcp(0).cwnd = 48;
    pair.enters(OPEN);
    assert_eq!(pair.seen(), 48);
    pair.tcp(0).cwnd = pair.tcp(0).ssthresh;
    pair.acked(0, 1);
    assert_eq!(pair.seen(), 50);
}

#[test]
fn siblings_see_the_old_window_again_when_there_was_no_loss() {
    let mut pair = Pair::of_windows(100);
    pair.reduces_in(RECOVERY);
    pair.tcp(0).cwnd = 60;
    pair.undoes();
    assert_eq!(pair.seen(), 100);
}
