//! Every order of events, for small sizes; and every planted bug is found.

#![allow(clippy::unwrap_used)]

use fbdt_model::Bug;
use fbdt_model::membership::{Membership, NO_FALSE_SERVER, NO_REVOKED, NO_STRANGER};
use fbdt_model::transfer::{IN_ORDER, NO_BYTE_LOST, NO_DEADLOCK, TRUE_END, Transfer};
use stateright::{Checker, Model};

/// Two paths, one of which is lost and one suspected, two windows.
const SMALL: Transfer = Transfer {
    frames: 2,
    window: 1,
    depth: 2,
    receive_window: 4,
    paths: 2,
    losses: 1,
    silences: 1,
    eager_reader: true,
    close: false,
    bug: None,
};

fn explore<M>(model: M) -> impl Checker<M>
where
    M: Model + Send + Sync + 'static,
    M::State: std::hash::Hash + Clone + PartialEq + Send + Sync + std::fmt::Debug,
    M::Action: Clone + PartialEq + Send + Sync + std::fmt::Debug,
{
    model.checker().threads(2).spawn_dfs().join()
}

/// The first property of these that is broken.
fn broken<M>(model: M) -> Option<&'static str>
where
    M: Model + Send + Sync + 'static,
    M::State: std::hash::Hash + Clone + PartialEq + Send + Sync + std::fmt::Debug,
    M::Action: Clone + PartialEq + Send + Sync + std::fmt::Debug,
{
    let checker = explore(model);
    let properties = checker.model().properties();
    properties
        .iter()
        .filter(|p| p.expectation != stateright::Expectation::Sometimes)
        .find(|p| checker.discovery(p.name).is_some())
        .map(|p| p.name)
}

fn holds<M>(model: M, least_states: usize)
where
    M: Model + Send + Sync + 'static,
    M::State: std::hash::Hash + Clone + PartialEq + Send + Sync + std::fmt::Debug,
    M::Action: Clone + PartialEq + Send + Sync + std::fmt::Debug,
{
    let checker = explore(model);
    checker.assert_properties();
    let states = checker.unique_state_count();
    println!("{states} states, {} deep", checker.max_depth());
    assert!(states >= least_states, "only {states} states: the bounds leave nothing to explore");
}

#[test]
fn f2_f5_f6_f8_f13_hold_in_every_order() {
    holds(SMALL, 10_000);
}

#[test]
fn f5_one_window_at_a_time_holds_in_every_order() {
    holds(Transfer { depth: 1, ..SMALL }, 1000);
}

#[test]
fn f2_a_small_receive_window_holds_in_every_order() {
    holds(Transfer { receive_window: 1, silences: 0, eager_reader: false, ..SMALL }, 1000);
}

#[test]
fn f9_one_path_that_is_lost_twice_comes_back() {
    holds(
        Transfer { frames: 3, window: 2, paths: 1, losses: 2, eager_reader: false, ..SMALL },
        1000,
    );
}

#[test]
fn a_close_at_any_moment_never_looks_like_an_end() {
    holds(Transfer { frames: 1, close: true, silences: 0, ..SMALL }, 1000);
}

#[test]
fn no_join_without_the_secret_and_no_false_server() {
    holds(Membership { connections: 5, bug: None }, 10_000);
}

#[test]
fn planted_acknowledge_before_receive_is_found() {
    let bug = Some(Bug::AcknowledgeBeforeReceive);
    assert_eq!(broken(Transfer { bug, ..SMALL }), Some(NO_BYTE_LOST));
}

#[test]
fn planted_reload_before_all_is_delivered_is_found() {
    for depth in [1, 2] {
        let bug = Some(Bug::ReloadBeforeDelivered);
        let model = Transfer { depth, bug, ..SMALL };
        assert_eq!(broken(model), Some(NO_BYTE_LOST), "depth {depth}");
    }
}

#[test]
fn planted_replayed_join_is_found() {
    let bug = Some(Bug::AcceptReplayedJoin);
    assert_eq!(broken(Membership { connections: 3, bug }), Some(NO_STRANGER));
}

#[test]
fn other_planted_bugs_are_found() {
    let of = |bug| broken(Transfer { bug: Some(bug), ..SMALL });
    assert_eq!(of(Bug::ForgetWhatWasOwed), Some(NO_DEADLOCK));
    assert_eq!(of(Bug::DeliverCopies), Some(IN_ORDER));
    // The limit that moved when the reader read is lost with the subflow.
    let limits =
        Transfer { paths: 1, receive_window: 1, silences: 0, eager_reader: false, ..SMALL };
    let once = Transfer { bug: Some(Bug::AcknowledgeOnce), ..limits };
    assert_eq!(broken(once), Some(NO_DEADLOCK));
    assert_eq!(broken(limits), None);
    let close = Transfer { bug: Some(Bug::CloseLooksLikeEnd), frames: 1, close: true, ..SMALL };
    assert_eq!(broken(close), Some(TRUE_END));
    let join = Membership { connections: 3, bug: Some(Bug::JoinWithoutProof) };
    assert_eq!(broken(join), Some(NO_STRANGER));
    let revoked = Membership { connections: 3, bug: Some(Bug::JoinAfterRevocation) };
    assert_eq!(broken(revoked), Some(NO_REVOKED));
    let welcome = Membership { connections: 3, bug: Some(Bug::AcceptReplayedWelcome) };
    assert_eq!(broken(welcome), Some(NO_FALSE_SERVER));
}
