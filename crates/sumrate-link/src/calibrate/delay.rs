//! One-way delays of a direction with jitter: mean and standard deviation of single packets. Both ends read one clock.

use std::f64::consts::{SQRT_2, TAU};
use std::io;
use std::net::UdpSocket;
use std::thread;
use std::time::{Duration, Instant};

use super::CalibrateError;
use super::endpoint::{Endpoints, is_timeout, resolve};
use super::verdict::{Measurement, delay_tolerances};
use crate::config::parameters::Parameters;
use crate::config::{Direction, Jitter, LinkConfig, Side};
use crate::time::to_millis;

const PAYLOAD: usize = 32;
/// Share of the link's rate that is used: no packet waits for another.
const LOAD: f64 = 0.4;
/// Least time between two packets.
const GAP: Duration = Duration::from_millis(1);
const FEWEST: f64 = 100.0;
const MOST: f64 = 2_000.0;

/// Measures the delays in `direction`, whose packets must be allowed to overtake each other: otherwise they would wait
/// for one another. Takes about four times `duration`.
pub(super) fn measure(
    link: &LinkConfig,
    ends: &Endpoints,
    direction: Direction,
    duration: Duration,
) -> Result<Vec<Measurement>, CalibrateError> {
    let fail = |source| CalibrateError::Socket {
        link: link.name.clone(),
        operation: "measuring the delay",
        source,
    };
    let parameters = &link.parameters[direction.index()];
    let [sender, receiver] = ends.pair(link, Side::source(direction))?;
    resolve(link, [&sender, &receiver])?;
    let bits = ((PAYLOAD + ends.header_bytes()) * 8) as f64;
    let sending_s = parameters.rate.nominal().map_or(0.0, |rate| bits / rate as f64);
    let gap = GAP.max(Duration::from_secs_f64(sending_s / LOAD));
    let count = (4.0 * duration.as_secs_f64() / gap.as_secs_f64()).clamp(FEWEST, MOST) as u64;
    let (mean, deviation) = expected_ms(parameters);
    let patience = Duration::from_secs_f64((mean + 8.0 * deviation + 500.0) / 1e3);
    receiver.set_read_timeout(Some(patience)).map_err(fail)?;
    let start = Instant::now();
    let delays = thread::scope(|scope| {
        let reader = scope.spawn(|| receive(&receiver, start, count));
        send(&sender, start, count, gap)?;
        reader.join().unwrap_or_else(|_| Err(io::Error::other("the reading thread ended early")))
    })
    .map_err(fail)?;
    let (measured_mean, measured_deviation) = moments(&delays);
    let expected_mean = mean + sending_s * 1e3;
    let tolerances = delay_tolerances(expected_mean, deviation, delays.len());
    Ok(vec![
        Measurement::checked("delay_ms", direction, expected_mean, measured_mean, tolerances[0]),
        Measurement::checked(
            "jitter_sd_ms",
            direction,
            deviation,
            measured_deviation,
            tolerances[1],
        ),
    ])
}

/// Sends the time since `start` in each packet.
fn send(socket: &UdpSocket, start: Instant, count: u64, gap: Duration) -> io::Result<()> {
    for _ in 0..count {
        let mut packet = [0; PAYLOAD];
        packet[..8].copy_from_slice(&start.elapsed().as_secs_f64().to_be_bytes());
        socket.send(&packet)?;
        thread::sleep(gap);
    }
    Ok(())
}

/// Delays in milliseconds, until `count` packets have come or none comes any more.
fn receive(socket: &UdpSocket, start: Instant, count: u64) -> io::Result<Vec<f64>> {
    let (mut delays, mut buffer) = (Vec::new(), [0; 64]);
    while (delays.len() as u64) < count {
        match socket.recv(&mut buffer) {
            Ok(PAYLOAD) => {
                let mut sent = [0; 8];
                sent.copy_from_slice(&buffer[..8]);
                delays.push((start.elapsed().as_secs_f64() - f64::from_be_bytes(sent)) * 1e3);
            }
            // A packet of `resolve`.
            Ok(_) => {}
            Err(error) if is_timeout(&error) => break,
            Err(error) => return Err(error),
        }
    }
    Ok(delays)
}

/// Mean and standard deviation; not numbers without samples.
fn moments(samples: &[f64]) -> (f64, f64) {
    let count = samples.len() as f64;
    let mean = samples.iter().sum::<f64>() / count;
    let squares = samples.iter().map(|sample| (sample - mean).powi(2)).sum::<f64>();
    (mean, (squares / count).sqrt())
}

/// Mean and standard deviation of the delay in milliseconds, without the time that a packet takes to send.
fn expected_ms(parameters: &Parameters) -> (f64, f64) {
    let delay = to_millis(parameters.delay);
    match parameters.jitter {
        Jitter::Uniform(most) => {
            let most = to_millis(most);
            (delay + most / 2.0, most / 12_f64.sqrt())
        }
        Jitter::Normal(deviation) => not_below_zero(delay, to_millis(deviation)),
    }
}

/// Mean and standard deviation of a normal number of which 0 stands for all values below it.
fn not_below_zero(mean: f64, deviation: f64) -> (f64, f64) {
    if deviation <= 0.0 {
        return (mean, 0.0);
    }
    let z = mean / deviation;
    let density = (-z * z / 2.0).exp() / TAU.sqrt();
    let above = 1.0 - tail(z);
    let first = mean * above + deviation * density;
    let second = (mean * mean + deviation * deviation) * above + mean * deviation * density;
    (first, (second - first * first).max(0.0).sqrt())
}

/// Probability that a standard normal number exceeds `z`, which is at least 0; error below 1e-7 (Abramowitz and
/// Stegun 7.1.26).
fn tail(z: f64) -> f64 {
    let x = z / SQRT_2;
    let t = 1.0 / (1.0 + 0.327_591_1 * x);
    let series = [1.061_405_429, -1.453_152_027, 1.421_413_741, -0.284_496_736, 0.254_829_592]
        .iter()
        .fold(0.0, |sum, coefficient| (sum + coefficient) * t);
    series * (-x * x).exp() / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_that_would_be_negative_count_as_none() {
        let (mean, deviation) = not_below_zero(40.0, 5.0);
        assert!((mean - 40.0).abs() < 1e-4 && (deviation - 5.0).abs() < 1e-3);
        let (mean, deviation) = not_below_zero(0.0, 10.0);
        assert!((mean - 10.0 / TAU.sqrt()).abs() < 1e-5, "{mean}");
        assert!((deviation - 10.0 * (0.5 - 1.0 / TAU).sqrt()).abs() < 1e-5, "{deviation}");
        assert_eq!(not_below_zero(3.0, 0.0), (3.0, 0.0));
    }

    #[test]
    fn the_tail_of_a_normal_distribution() {
        for (z, wanted) in [(0.0, 0.5), (1.0, 0.158_655_3), (3.0, 0.001_349_9)] {
            assert!((tail(z) - wanted).abs() < 2e-7, "{z}: {}", tail(z));
        }
    }

    #[test]
    fn without_samples_nothing_is_known() {
        assert!(moments(&[]).0.is_nan());
        assert_eq!(moments(&[1.0, 3.0]), (2.0, 1.0));
    }
}
