//! The smallest plan that still fails in the same way.

use super::plan::{LinkPlan, Operation, Plan};
use super::trial::run_plan;
use crate::violation::Violation;

/// Plans that are tried at most.
const MOST_TRIALS: usize = 3000;

/// Takes away and makes smaller what a failing plan does not need, as long as
/// it fails with the same kind of violation. A plan that does not fail comes
/// back as it is.
#[must_use]
pub fn shrink(plan: &Plan) -> Plan {
    match violation(plan).map(|violation| std::mem::discriminant(&violation)) {
        None => plan.clone(),
        Some(kind) => shrink_while(plan, |candidate| {
            violation(candidate).is_some_and(|v| std::mem::discriminant(&v) == kind)
        }),
    }
}

/// The same for any way to fail.
pub fn shrink_while(plan: &Plan, fails: impl Fn(&Plan) -> bool) -> Plan {
    let mut best = plan.clone();
    let mut left = MOST_TRIALS;
    let mut try_one = |candidate: Plan, best: &mut Plan| {
        if left == 0 || candidate == *best {
            return false;
        }
        left -= 1;
        let failed = fails(&candidate);
        if failed {
            *best = candidate;
        }
        failed
    };
    loop {
        let before = best.clone();
        remove_operations(&mut best, &mut try_one);
        remove_links(&mut best, &mut try_one);
        halve_operations(&mut best, &mut try_one);
        simplify_links(&mut best, &mut try_one);
        if best == before {
            return best;
        }
    }
}

fn violation(plan: &Plan) -> Option<Violation> {
    run_plan(plan, false).ok()?.violation
}

fn halve_operations(best: &mut Plan, try_one: &mut impl FnMut(Plan, &mut Plan) -> bool) {
    for index in 0..best.operations.len() {
        while let Some(smaller) = smaller(&best.operations[index]) {
            let mut candidate = best.clone();
            candidate.operations[index] = smaller;
            if !try_one(candidate, best) {
                break;
            }
        }
    }
}

/// Chunks of falling size, as in delta debugging.
fn remove_operations(best: &mut Plan, try_one: &mut impl FnMut(Plan, &mut Plan) -> bool) {
    let mut size = best.operations.len().div_ceil(2);
    while size > 0 {
        let mut at = 0;
        while at < best.operations.len() {
            let mut candidate = best.clone();
            candidate.operations.drain(at..(at + size).min(best.operations.len()));
            if !try_one(candidate, best) {
                at += size;
            }
        }
        size = if size == 1 { 0 } else { size.div_ceil(2) };
    }
}

fn remove_links(best: &mut Plan, try_one: &mut impl FnMut(Plan, &mut Plan) -> bool) {
    let mut at = 0;
    while best.links.len() > 1 && at < best.links.len() {
        let mut candidate = best.clone();
        candidate.links.remove(at);
        if !try_one(candidate, best) {
            at += 1;
        }
    }
}

fn simplify_links(best: &mut Plan, try_one: &mut impl FnMut(Plan, &mut Plan) -> bool) {
    const PLAIN: LinkPlan = LinkPlan {
        kbps: 100_000,
        rtt_us: 10_000,
        queue_us: 20_000,
        loss_ppm: 0,
        backup: 0,
        never: Vec::new(),
    };
    for at in 0..best.links.len() {
        let mut candidate = best.clone();
        candidate.links[at] = PLAIN;
        try_one(candidate, best);
        let mut candidate = best.clone();
        candidate.links[at].loss_ppm = 0;
        try_one(candidate, best);
        let mut candidate = best.clone();
        candidate.links[at].never.clear();
        try_one(candidate, best);
    }
    let mut candidate = best.clone();
    candidate.setup.clocks_ms = [0, 0];
    try_one(candidate, best);
}

/// The same operation with half of its size.
fn smaller(operation: &Operation) -> Option<Operation> {
    let mut smaller = operation.clone();
    let size = match &mut smaller {
        Operation::Write { bytes, .. } => bytes,
        Operation::Advance { us } => us,
        Operation::Stall { ms, .. }
        | Operation::ClockJump { ms, .. }
        | Operation::Suspend { ms, .. } => ms,
        _ => return None,
    };
    if *size <= 1 {
        return None;
    }
    *size /= 2;
    Some(smaller)
}
