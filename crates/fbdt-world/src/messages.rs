//! Messages and a paced stream: how long each piece is on its way.

use std::time::Duration;

use crate::draw::{Draw, Work};
use crate::measure::{Bearer, Outcome, STEP, Stalls};
use crate::stage::{Timeline, seconds};

/// Pieces that were written, and how long those took that arrived.
struct Pieces {
    written: Vec<Duration>,
    latencies: Vec<Duration>,
}

pub(crate) fn measure<B: Bearer>(
    draw: &Draw,
    bearer: &mut B,
    timeline: &mut Timeline,
    (bytes, every): (u64, Duration),
    each: &mut impl FnMut(&B),
) -> Result<Outcome, String> {
    bearer.begin()?;
    let talks = matches!(draw.work, Work::Messages { .. });
    let begins = bearer.elapsed();
    let end = begins + seconds(draw.time_s);
    let before = bearer.delivered();
    let mut stalls = Stalls::new(begins, before);
    let mut pieces = Pieces { written: Vec::new(), latencies: Vec::new() };
    let (mut read, mut sent) = (0, 0);
    timeline
        .run_until(bearer, end, STEP.min(every), |bearer| {
            let now = bearer.elapsed();
            let due = (now - begins).as_nanos() / every.as_nanos().max(1);
            while (pieces.written.len() as u128) < due {
                if !talks {
                    bearer.write(bytes);
                }
                pieces.written.push(now);
            }
            // A full session takes no more now: the program tries again.
            while talks && sent < pieces.written.len() && bearer.send_message(bytes) {
                sent += 1;
            }
            let numbers = if talks { bearer.messages(read) } else { Vec::new() };
            read += numbers.len();
            let whole = ((bearer.delivered() - before) / bytes.max(1)) as usize;
            note(&mut pieces, now, &numbers, whole);
            stalls.note(now, pieces.latencies.len() as u64 + before);
            each(bearer);
            false
        })
        .map_err(|error| error.to_string())?;
    stalls.end(end);
    let arrived = pieces.latencies.len() as f64;
    let on_their_way =
        pieces.written.iter().rev().take(pieces.written.len() - pieces.latencies.len());
    let late: Vec<Duration> = on_their_way.map(|at| end - *at).collect();
    pieces.latencies.extend(late);
    pieces.latencies.sort_unstable();
    let quantile = |share: f64| {
        let index = (pieces.latencies.len().saturating_sub(1)) as f64 * share;
        pieces.latencies.get(index as usize).map_or(0.0, |time| time.as_secs_f64() * 1e3)
    };
    Ok(Outcome {
        goodput_mbps: arrived * bytes as f64 * 8e-6 / draw.time_s,
        stall_ms: stalls.longest_ms(),
        latency_p50_ms: quantile(0.5),
        latency_p99_ms: quantile(0.99),
        ..Outcome::default()
    })
}

/// Notes messages by their numbers, or how many pieces of a stream are whole.
fn note(pieces: &mut Pieces, now: Duration, numbers: &[u64], whole: usize) {
    for number in numbers {
        if let Some(at) = pieces.written.get(*number as usize) {
            pieces.latencies.push(now - *at);
        }
    }
    while pieces.latencies.len() < whole && pieces.latencies.len() < pieces.written.len() {
        let at = pieces.written[pieces.latencies.len()];
        pieces.latencies.push(now - at);
    }
}
