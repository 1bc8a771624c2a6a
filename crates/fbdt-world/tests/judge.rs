//! The judge: the same draws give the same verdicts, and it sees a scheduler that does badly.

#![allow(clippy::unwrap_used)]

use std::sync::atomic::{AtomicBool, Ordering};

use fbdt_proto::{Config, Limits};
use fbdt_world::draw::{Draw, Work};
use fbdt_world::goals::{Goal, Verdict, goals, kinds, worst};
use fbdt_world::judge::{Judge, Setting};
use fbdt_world::{log, words};

/// Draws that are cheap to simulate.
fn judge(settings: Vec<Setting>, threads: usize) -> Judge {
    Judge { first: 20, draws: 12, settings, threads }
}

fn run(judge: &Judge) -> Vec<Verdict> {
    let verdicts = judge.run(&AtomicBool::new(false), |_| {});
    verdicts.into_iter().map(|verdict| Verdict { wall_s: 0.0, ..verdict }).collect()
}

fn reached(goals: &[Goal], goal: &str) -> f64 {
    goals.iter().find(|g| g.goal == goal).unwrap().reached
}

#[test]
fn verdicts_do_not_depend_on_threads_and_come_by_seed() {
    let once = run(&judge(vec![Setting::product()], 1));
    assert_eq!(once, run(&judge(vec![Setting::product()], 3)));
    let seeds: Vec<u64> = once.iter().map(|verdict| verdict.draw.seed).collect();
    assert_eq!(seeds, (20..32).collect::<Vec<_>>());
    for verdict in &once {
        assert_eq!(verdict.alone.len(), verdict.draw.paths.len());
        assert!(verdict.judged().violation.is_empty(), "{}", words::verdict(verdict));
    }
}

#[test]
fn outcomes_are_those_of_the_verdicts() {
    let judge = Judge { draws: 6, ..judge(vec![Setting::product()], 2) };
    let outcomes = judge.outcomes(&AtomicBool::new(false), |_| {});
    let verdicts = run(&judge);
    assert_eq!(outcomes.len(), 6);
    for (judged, verdict) in outcomes.iter().zip(&verdicts) {
        assert_eq!((judged.seed, &judged.outcome), (verdict.draw.seed, verdict.judged()));
    }
}

#[test]
fn a_scheduler_that_does_badly_is_seen() {
    // The whole session holds no more than one small buffer.
    let limits = Limits {
        max_frame: 4 << 10,
        stream_window: 8 << 10,
        session_window: 8 << 10,
        ..Limits::default()
    };
    let bad = Setting { name: "bad".to_owned(), config: Config { limits, ..Config::default() } };
    let verdicts = run(&judge(vec![Setting::product(), bad], 2));
    let swapped = verdicts.iter().cloned().map(|mut verdict| {
        verdict.runs.reverse();
        verdict
    });
    let bad: Vec<Verdict> = swapped.collect();
    let (good, poor) = (goals(&verdicts), goals(&bad));
    let bulk = "bulk: at least 0.95 of the best scheduler";
    assert!(reached(&poor, bulk) < reached(&good, bulk) - 0.3, "{good:?} {poor:?}");
    assert!(poor.iter().any(|goal| !goal.is_reached()));
    let worst = worst(&bad, 3);
    assert!(worst[0].fair_ratio(worst[0].judged()) < 0.6, "{}", words::verdict(worst[0]));
}

#[test]
fn it_stops_when_it_is_told_to() {
    let stop = AtomicBool::new(false);
    let judge = Judge { draws: 10_000, ..judge(vec![Setting::product()], 2) };
    let verdicts = judge.run(&stop, |done| stop.store(done >= 3, Ordering::Relaxed));
    assert!((3..10).contains(&verdicts.len()), "{}", verdicts.len());
}

#[test]
fn goals_name_what_they_count() {
    let verdicts = run(&judge(vec![Setting::product()], 2));
    let goals = goals(&verdicts);
    let bulk = verdicts.iter().filter(|verdict| verdict.draw.work.is_bulk()).count();
    assert_eq!(goals[0].draws, bulk);
    assert!(goals.iter().all(|goal| (0.0..=1.0).contains(&goal.reached)), "{goals:?}");
    let table = words::goals(&goals);
    assert_eq!(table.lines().count(), goals.len());
    assert!(kinds(&verdicts).iter().all(|kind| kind.draws <= bulk));
}

#[test]
fn a_session_is_logged_and_a_draw_described() {
    let short = (0..).map(Draw::from_seed).find(|draw| matches!(draw.work, Work::Short { .. }));
    let draw = short.unwrap();
    let text = log::session(&draw, &Config::default());
    assert!(text.starts_with(&words::draw(&draw)));
    assert!(text.contains("Mbit/s") && text.contains("path 0 up"), "{text}");
}

#[test]
fn verdicts_follow_the_schema() {
    let schema = include_str!("../../../docs/schemas/world.v1.json");
    let schema: serde_json::Value = serde_json::from_str(schema).unwrap();
    let judge = Judge { draws: 1, ..judge(vec![Setting::product()], 1) };
    let verdict = serde_json::to_value(&run(&judge)[0]).unwrap();
    let parts = [
        ("verdict", &verdict),
        ("draw", &verdict["draw"]),
        ("path", &verdict["draw"]["paths"][0]),
        ("outcome", &verdict["alone"][0]),
        ("run", &verdict["runs"][0]),
    ];
    for (name, value) in parts {
        let mut fields: Vec<&String> = value.as_object().unwrap().keys().collect();
        let described = schema["$defs"][name]["properties"].as_object().unwrap();
        let mut known: Vec<&String> = described.keys().collect();
        fields.sort();
        known.sort();
        assert_eq!(fields, known, "{name}");
    }
}

#[test]
fn a_draw_in_a_file_is_checked_before_it_runs() {
    let draw = Draw::from_seed(17);
    assert_eq!(draw.check(), Ok(()));
    let wrong = |change: fn(&mut Draw)| {
        let mut draw = draw.clone();
        change(&mut draw);
        draw.check().unwrap_err()
    };
    assert!(wrong(|draw| draw.paths.clear()).starts_with("paths: 0"));
    assert!(wrong(|draw| draw.paths[0].loss = 1.5).starts_with("loss: 1.5"));
    assert!(wrong(|draw| draw.time_s = f64::NAN).starts_with("time_s: NaN"));
}
