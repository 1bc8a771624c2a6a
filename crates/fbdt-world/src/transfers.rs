//! Short transfers, one after the other, over connections that stand.

use std::time::Duration;

use crate::draw::Draw;
use crate::measure::{Bearer, Outcome, Stalls};
use crate::stage::{Timeline, seconds};

/// Most transfers of a draw.
const MOST: f64 = 10.0;
/// Time between one's end and the next one's beginning.
const PAUSE: Duration = Duration::from_millis(100);
/// When so many times the draw's time are over, all that has not arrived counts as that late.
const PATIENCE: f64 = 3.0;
/// Its arrival is known to this precision, relative to its expected time.
const PRECISION: f64 = 1.0 / 2000.0;

/// How long a transfer takes over the best path, roughly, in seconds.
fn expected(draw: &Draw, bytes: u64) -> f64 {
    let one =
        |path: &crate::draw::PathDraw| bytes as f64 / (path.down_mbps * 125e3) + path.rtt_ms / 1e3;
    draw.paths.iter().map(one).fold(f64::MAX, f64::min)
}

pub(crate) fn measure<B: Bearer>(
    draw: &Draw,
    bearer: &mut B,
    timeline: &mut Timeline,
    bytes: u64,
    each: &mut impl FnMut(&B),
) -> Result<Outcome, String> {
    let expected = expected(draw, bytes);
    let count = (draw.time_s / (2.0 * expected + PAUSE.as_secs_f64())).clamp(1.0, MOST) as u64;
    let end = bearer.elapsed() + seconds(PATIENCE * draw.time_s);
    let step = seconds(expected * PRECISION).clamp(Duration::from_micros(50), PAUSE / 100);
    let (mut total, mut stall) = (Duration::ZERO, 0.0_f64);
    for number in 0..count {
        if bearer.elapsed() >= end {
            // Those that could not even begin count as late as that.
            total += seconds(PATIENCE * draw.time_s) * u32::try_from(count - number).unwrap_or(1);
            break;
        }
        bearer.begin()?;
        let (begins, goal) = (bearer.elapsed(), bearer.delivered() + bytes);
        let mut stalls = Stalls::new(begins, bearer.delivered());
        bearer.write(bytes);
        timeline
            .run_until(bearer, end, step, |bearer| {
                stalls.note(bearer.elapsed(), bearer.delivered());
                each(bearer);
                bearer.delivered() >= goal
            })
            .map_err(|error| error.to_string())?;
        total += bearer.elapsed() - begins;
        stalls.end(bearer.elapsed());
        stall = stall.max(stalls.longest_ms());
        let pause = (bearer.elapsed() + PAUSE).min(end);
        timeline.run_until(bearer, pause, PAUSE, |_| false).map_err(|error| error.to_string())?;
    }
    let transfer = total.as_secs_f64() / count as f64;
    Ok(Outcome {
        transfer_ms: transfer * 1e3,
        goodput_mbps: bytes as f64 * 8e-6 / transfer.max(1e-9),
        stall_ms: stall,
        ..Outcome::default()
    })
}
