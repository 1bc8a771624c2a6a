//! The soak itself: seeds mean something, and what it must find it finds.

#![allow(clippy::unwrap_used)]

use std::time::Duration;

use fbdt_proto::{Class, SchedulerKind};
use fbdt_sim::soak::{Fault, Operation, Plan, Report, Soak, run_plan, shrink, shrink_while};
use fbdt_sim::{LinkParameters, Scenario, Simulation, Violation};

fn soak(first: u64, seeds: u64, threads: usize) -> Report {
    Soak { first, seeds, threads }.run(|_, _| true).unwrap()
}

#[test]
fn f1_to_f16_are_all_at_work_in_a_few_hundred_seeds() {
    let report = soak(0, 600, 2);
    assert_eq!(report.failures, []);
    assert_eq!(report.unseen().collect::<Vec<_>>(), []);
    for fault in Fault::ALL {
        assert!(report.faults[fault].injected > 0, "{} is never injected", fault.name());
    }
    assert_eq!(report.idle_schedulers().collect::<Vec<_>>(), [""; 0]);
}

/// Every end draws from all schedulers, and what only the product's own two do stays in half of them.
#[test]
fn seeds_draw_from_all_schedulers_and_the_products_own_as_often_as_all_others() {
    let drawn: Vec<String> =
        (0..2000).flat_map(|seed| Plan::of_seed(seed).setup.placement).collect();
    let share = |kind: SchedulerKind| {
        drawn.iter().filter(|name| *name == kind.name()).count() as f64 / drawn.len() as f64
    };
    for kind in SchedulerKind::ALL {
        let least = if kind.is_fbdt() { 0.2 } else { 0.03 };
        assert!(share(kind) > least, "{} in {} of all", kind.name(), share(kind));
    }
    // A table of this report would say so if one were never at work.
    let report = soak(0, 1, 1);
    assert_eq!(report.schedulers.len(), SchedulerKind::ALL.len());
    assert!(report.idle_schedulers().count() >= 9, "one seed has at most two");
}

#[test]
fn a_report_does_not_depend_on_threads() {
    assert_eq!(soak(7000, 60, 1), soak(7000, 60, 2));
}

#[test]
fn a_seed_replays_byte_for_byte_and_its_plan_survives_a_file() {
    for seed in 0..40 {
        let plan = Plan::of_seed(seed);
        let kept: Plan = serde_json::from_str(&serde_json::to_string(&plan).unwrap()).unwrap();
        assert_eq!(plan, kept);
        let (first, again) = (run_plan(&plan, true).unwrap(), run_plan(&kept, true).unwrap());
        assert!(first.log == again.log && !first.log.is_empty(), "seed {seed} differs");
        assert_eq!(first, again);
    }
}

#[test]
fn a_plan_with_a_policy_that_does_not_exist_is_refused_by_name() {
    let mut plan = Plan::of_seed(1);
    plan.setup.window_mode = "sliding".to_owned();
    let error = run_plan(&plan, false).unwrap_err().to_string();
    assert!(error.contains("window_mode") && error.contains("pipelined, thesis"), "{error}");
    plan.links.clear();
    assert!(run_plan(&plan, false).unwrap_err().to_string().contains("1 to 8"));
}

/// Every way to end a stream or a session, before every single event of a
/// transfer in both directions over two paths.
#[test]
fn every_close_at_every_moment() {
    type Close = fn(&mut Simulation, bool);
    const CLOSES: [(&str, Close); 5] = [
        ("session", |s, client| s.close(client, 0x100)),
        ("reset", |s, client| each(s, client, Simulation::abandon)),
        ("stop", |s, client| each(s, client, Simulation::stop)),
        ("release", |s, client| each(s, client, Simulation::release)),
        ("killed", |s, _| s.restart_server()),
    ];
    let mut moments = 0;
    for (name, close) in CLOSES {
        for client in [true, false] {
            let mut at = 0;
            while close_at(at, client, close).unwrap_or_else(|e| panic!("{name} at {at}: {e}")) {
                at += 1;
            }
            moments += at;
        }
    }
    assert!(moments > 500, "only {moments} moments");
}

fn each(s: &mut Simulation, client: bool, close: fn(&mut Simulation, bool, fbdt_proto::StreamId)) {
    for id in s.streams(client) {
        close(s, client, id);
    }
}

/// Whether event number `at` came before everything was done.
fn close_at(at: u32, client: bool, close: fn(&mut Simulation, bool)) -> Result<bool, Violation> {
    let links = vec![LinkParameters::new(20.0, 8.0), LinkParameters::new(50.0, 3.0)];
    let mut scenario = Scenario::new(3, links);
    scenario.tidy = true;
    scenario.lingering_allowed = true;
    scenario.log = false;
    let mut simulation = Simulation::new(scenario).unwrap();
    let streams = [true, false].map(|own| (own, simulation.open(own, Class::Streaming).unwrap()));
    for (own, id) in streams {
        simulation.write(own, id, 60_000);
    }
    simulation.finish_all();
    let patience = Duration::from_millis(20);
    for _ in 0..at {
        if simulation.is_done() {
            return Ok(false);
        }
        simulation.run_one(patience)?;
    }
    close(&mut simulation, client);
    let wait = Duration::from_secs(90);
    let ended = |s: &Simulation| if s.is_ending() { s.is_over() } else { s.is_done() };
    if !simulation.run_until(wait, ended)? {
        let missing = simulation.missing();
        return Err(Violation::Missing { waited_ms: 90_000, missing });
    }
    if !simulation.is_over() {
        simulation.run_until(Duration::from_secs(5), |s| s.check_leaks().is_ok())?;
        simulation.check_leaks()?;
    }
    Ok(true)
}

/// The invariants can fail: a plan whose only path never works is reported.
#[test]
fn what_never_arrives_is_a_violation() {
    let mut simulation =
        Simulation::new(Scenario::new(1, vec![LinkParameters::new(10.0, 5.0)])).unwrap();
    let id = simulation.open(true, Class::Background).unwrap();
    simulation.run(Duration::from_millis(100)).unwrap();
    // A reader that everybody believes to be reading, and that does not.
    simulation.write(true, id, 1000);
    simulation.pace_reading(false, Some((0, Duration::from_millis(1))));
    let error = simulation.run(Duration::from_secs(30)).unwrap_err();
    assert!(matches!(error, Violation::Stuck { .. }), "{error}");
}

/// Shrinking keeps what matters and nothing else.
#[test]
fn the_smallest_plan_that_fails_is_found() {
    let of_interest = |plan: &Plan| {
        let large = |o: &Operation| matches!(o, Operation::Write { bytes, .. } if *bytes >= 100);
        let reset = |o: &Operation| matches!(o, Operation::Reset { .. });
        let write = plan.operations.iter().position(large);
        write.is_some_and(|at| plan.operations[at..].iter().any(reset))
    };
    let plan = (0..).map(Plan::of_seed).find(|p| of_interest(p) && p.operations.len() > 12);
    let smallest = shrink_while(&plan.unwrap(), of_interest);
    assert!(
        matches!(
            smallest.operations[..],
            [Operation::Write { bytes: 100..200, .. }, Operation::Reset { .. }]
        ),
        "{:?}",
        smallest.operations
    );
    assert_eq!(smallest.links.len(), 1);
    let sound = Plan::of_seed(1);
    assert_eq!(shrink(&sound), sound, "what does not fail stays as it is");
}

#[test]
fn shrinking_a_seed_that_breaks_nothing_says_so() {
    let soak = env!("CARGO_BIN_EXE_fbdt-soak");
    let output =
        std::process::Command::new(soak).args(["replay", "1", "--shrink"]).output().unwrap();
    assert!(output.status.success());
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("nothing to shrink"), "{said}");
    assert_eq!(serde_json::from_slice::<Plan>(&output.stdout).unwrap(), Plan::of_seed(1));
}

#[test]
fn operations_without_a_fault_are_work() {
    assert_eq!(Operation::Advance { us: 1 }.fault(), None);
    assert_eq!(Operation::RestartPeer.fault(), Some(Fault::PeerRestarted));
}

/// A fault is counted where there is something that it can happen to.
#[test]
fn what_meets_nothing_is_not_counted() {
    let away = Operation::RemovePath { path: 0, told: true };
    let operations = vec![
        away.clone(),
        away,
        Operation::Blackout { path: 0 },
        Operation::Reset { path: 0 },
        Operation::RestorePath { path: 0 },
        Operation::Blackout { path: 0 },
        Operation::Heal { path: 0 },
    ];
    let plan = Plan { operations, ..Plan::of_seed(5) };
    let outcome = run_plan(&plan, false).unwrap();
    assert_eq!(outcome.violation, None);
    let counted: Vec<_> = outcome.faults.into_iter().collect();
    assert_eq!(counted, [(Fault::Blackout, 1), (Fault::PathRemoved, 1)]);
    let closes = vec![Operation::Finish { client: false, stream: 0 }; 2];
    let nothing_open = Plan { operations: closes, ..Plan::of_seed(5) };
    let outcome = run_plan(&nothing_open, false).unwrap();
    assert!(outcome.faults.is_empty(), "{:?}", outcome.faults);
}
