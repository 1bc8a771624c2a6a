//! Draws and verdicts in words.

use std::fmt::Write as _;

use crate::draw::{Bottleneck, Control, Draw, PathDraw, Work};
use crate::goals::{Goal, Kind, Verdict, best_path};
use crate::measure::Outcome;

/// A number with three digits that count.
fn number(value: f64) -> String {
    let digits = if value == 0.0 { 0 } else { 2 - value.abs().log10().floor() as i32 };
    format!("{value:.*}", digits.clamp(0, 4) as usize)
}

fn bytes(bytes: u64) -> String {
    match bytes {
        0..10_000 => format!("{bytes} B"),
        10_000..1_000_000 => format!("{} kB", number(bytes as f64 / 1e3)),
        _ => format!("{} MB", number(bytes as f64 / 1e6)),
    }
}

/// One path in a line.
#[must_use]
pub fn path(path: &PathDraw) -> String {
    let mut text = format!(
        "{}/{} Mbit/s, {} ms",
        number(path.down_mbps),
        number(path.up_mbps),
        number(path.rtt_ms)
    );
    let mut add = |words: String| {
        let _ = write!(text, ", {words}");
    };
    match path.bottleneck {
        Bottleneck::QueueMs(ms) => add(format!("queue {} ms", number(ms))),
        Bottleneck::PolicerMs(ms) => add(format!("policer {} ms", number(ms))),
    }
    if path.burst_bytes > 0 {
        add(format!("bucket {}", bytes(path.burst_bytes)));
    }
    if path.loss > 0.0 {
        let run = if path.loss_run > 1.0 {
            format!(" in runs of {}", number(path.loss_run))
        } else {
            String::new()
        };
        add(format!("loss {} %{run}", number(path.loss * 100.0)));
    }
    if path.jitter_ms > 0.0 {
        let order = if path.overtaking { " overtaking" } else { "" };
        add(format!("jitter {} ms{order}", number(path.jitter_ms)));
    }
    if path.gathered_ms > 0.0 {
        add(format!("acknowledgements every {} ms", number(path.gathered_ms)));
    }
    if let Some(first) = path.outages.first() {
        let dark: f64 = path.outages.iter().map(|outage| outage.length_s).sum();
        let (count, at) = (path.outages.len(), number(first.at_s));
        add(format!("{count} outages from {at} s on, {} s in all", number(dark)));
    }
    if let Some(first) = path.steps.first() {
        add(format!("rate steps every {} s", number(first.at_s)));
    }
    if let Some(sleep) = path.sleep {
        let (rest, wake) = (number(sleep.rest_ms), number(sleep.wake_ms));
        add(format!("sleeps after {rest} ms, wakes in {wake} ms"));
    }
    if path.others > 0 {
        add(format!("{} other TCPs", path.others));
    }
    text
}

/// A draw in a few lines.
#[must_use]
pub fn draw(draw: &Draw) -> String {
    let work = match draw.work {
        Work::BulkDown => "a download that does not end".to_owned(),
        Work::BulkUp => "an upload that does not end".to_owned(),
        Work::Short { bytes: size } => format!("downloads of {}", bytes(size)),
        Work::Stream { bytes: size, every_ms } => {
            format!("{} every {} ms", bytes(size), number(every_ms))
        }
        Work::Messages { bytes: size, every_ms } => {
            format!("messages of {} every {} ms", bytes(size), number(every_ms))
        }
    };
    let control = match draw.control {
        Control::Cubic => "cubic",
        Control::Bbr => "bbr",
    };
    let shared = if draw.shared { ", the second path over the first one's bottleneck" } else { "" };
    let mut text = format!(
        "draw {}: {work}, {control}, buffers of {}, {} s{shared}\n",
        draw.seed,
        bytes(draw.buffer_bytes),
        number(draw.time_s)
    );
    for (index, drawn) in draw.paths.iter().enumerate() {
        let _ = writeln!(text, "  path {index}: {}", path(drawn));
    }
    text
}

/// An outcome in a line.
#[must_use]
pub fn outcome(work: Work, outcome: &Outcome) -> String {
    if !outcome.violation.is_empty() {
        return format!("failed: {}", outcome.violation);
    }
    let mut text = format!("{:>8} Mbit/s", number(outcome.goodput_mbps));
    match work {
        Work::Short { .. } => {
            let _ = write!(text, ", a transfer in {} ms", number(outcome.transfer_ms));
        }
        Work::Stream { .. } | Work::Messages { .. } => {
            let (p50, p99) = (number(outcome.latency_p50_ms), number(outcome.latency_p99_ms));
            let _ = write!(text, ", there after {p50} ms (p99 {p99} ms)");
        }
        Work::BulkDown | Work::BulkUp => {}
    }
    let _ = write!(
        text,
        ", longest stall {} ms, in-order delay {} ms, copies {:.2} %",
        number(outcome.stall_ms),
        number(outcome.in_order_p99_ms),
        outcome.copies * 100.0
    );
    text
}

/// A verdict in a few lines.
#[must_use]
pub fn verdict(verdict: &Verdict) -> String {
    let work = verdict.draw.work;
    let mut text = draw(&verdict.draw);
    let best = best_path(&verdict.draw, &verdict.alone);
    for (index, alone) in verdict.alone.iter().enumerate() {
        let mark = if index == best { " (best)" } else { "" };
        let _ = writeln!(text, "  path {index} alone{mark}: {}", outcome(work, alone));
    }
    let sum: f64 = verdict.alone.iter().map(|alone| alone.goodput_mbps).sum();
    let _ = writeln!(text, "  sum of the paths alone: {} Mbit/s", number(sum));
    let again: Vec<String> = verdict.again.iter().map(|a| number(verdict.ratio(a))).collect();
    let again = again.join(", ");
    let _ = writeln!(text, "  best path alone with other losses and jitter: {again} of it");
    let single = number(verdict.ratio(&verdict.single));
    let _ = writeln!(text, "  the session over the best path alone: {single} of it");
    for run in &verdict.runs {
        let (name, ratio) = (&run.scheduler, number(verdict.ratio(&run.outcome)));
        let _ = writeln!(
            text,
            "  {name:<18} {ratio:>6} of the best path: {}",
            outcome(work, &run.outcome)
        );
    }
    text
}

/// The goals as a table.
#[must_use]
pub fn goals(goals: &[Goal]) -> String {
    let mut text = String::new();
    for goal in goals {
        let copies = goal.goal.starts_with("copies");
        let share = |value: f64| format!("{:.2} %", value * 100.0);
        let wanted = match goal.wanted {
            Some(wanted) if copies => format!("goal below {}", share(wanted)),
            Some(wanted) => format!("goal {}", share(wanted)),
            None => "for comparison".to_owned(),
        };
        let verdict = match (goal.wanted, goal.is_reached()) {
            (None, _) => "",
            (_, true) => "reached",
            (_, false) => "missed",
        };
        let _ = writeln!(
            text,
            "{:<50} {:>6} draws {:>9}  {wanted:<18} {verdict}",
            goal.goal,
            goal.draws,
            share(goal.reached)
        );
    }
    text
}

/// How bulk draws do by properties of their best path, as a table.
#[must_use]
pub fn kinds(kinds: &[Kind]) -> String {
    let mut text =
        "best path alone has            draws  below 0.98   without it  10th percentile\n"
            .to_owned();
    for kind in kinds {
        let _ = writeln!(
            text,
            "{:<30} {:>5} {:>9.1} % {:>10.1} % {:>10.3}",
            kind.kind,
            kind.draws,
            kind.below * 100.0,
            kind.below_without * 100.0,
            kind.p10
        );
    }
    text
}
