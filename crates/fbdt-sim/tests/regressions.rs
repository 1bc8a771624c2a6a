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
    ($($name:ident $file:literal,)*) => {
        $(#[test]
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
    f8_an_acknowledgement_due_while_the_socket_is_full_does_not_spin
        "acknowledgement-due-while-the-socket-is-full",
    a_reset_connection_delivers_nothing_behind_a_hole "reset-connection-with-a-hole",
}
