//! Plans that once broke an invariant, shrunk, each under the name of what
//! was wrong. `fbdt-soak replay --plan FILE --log` shows one.

#![allow(clippy::unwrap_used)]

use fbdt_sim::soak::{Plan, run_plan};

fn holds(plan: &str) {
    let plan: Plan = serde_json::from_str(plan).unwrap();
    let outcome = run_plan(&plan, false).unwrap();
    assert_eq!(outcome.violation, None);
}

macro_rules! regressions {
    ($($(#[$words:meta])* $name:ident $file:literal,)*) => {
        $($(#[$words])*
        #[test]
        fn $name() {
            holds(include_str!(concat!("regressions/", $file, ".json")));
        })*

        #[test]
        fn every_kept_plan_has_a_test() {
            let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/regressions");
            let count = std::fs::read_dir(folder).unwrap().count();
            assert_eq!(count, [$($file,)*].len());
        }
    };
}

regressions! {
    /// Found: an acknowledgement fell due while its socket was full, and the
    /// same instant was asked for again and again until the socket drained: a
    /// driver would have spun.
    f8_an_acknowledgement_due_while_the_socket_is_full_does_not_spin
        "acknowledgement-due-while-the-socket-is-full",
    /// Found: a connection that was reset while it had lost a segment gave
    /// its reader what had arrived behind the hole, as no TCP does. What the
    /// socket of a reset connection still delivers ends at the first hole.
    a_reset_connection_delivers_nothing_behind_a_hole "reset-connection-with-a-hole",
}
