//! Round trip of an idle link: small UDP packets there and back, the median.

use std::io;
use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::CalibrateError;
use super::endpoint::{Endpoints, is_timeout, resolve};
use super::verdict::{Measurement, ROUND_TRIP_MS, ROUND_TRIP_SHARE};
use crate::config::parameters::Parameters;
use crate::config::{Direction, LinkConfig, Side};
use crate::time::{Nanos, to_millis};

const PAYLOAD: usize = 32;
const GAP: Duration = Duration::from_millis(3);
const MOST_TIME_MS: f64 = 3_000.0;
/// Fewer answers than this decide nothing.
const FEWEST: usize = 5;

/// Measures the round trip that begins at `side`.
pub(super) fn measure(
    link: &LinkConfig,
    ends: &Endpoints,
    side: Side,
) -> Result<Measurement, CalibrateError> {
    let fail = |source| CalibrateError::Socket {
        link: link.name.clone(),
        operation: "measuring the round trip",
        source,
    };
    let [pinger, echoer] = ends.pair(link, side)?;
    resolve(link, [&pinger, &echoer])?;
    resolve(link, [&echoer, &pinger])?;
    let expected = expected_ms(link, (PAYLOAD + ends.header_bytes()) as u64 * 8);
    let done = AtomicBool::new(false);
    let mut trips = thread::scope(|scope| {
        scope.spawn(|| echo(&echoer, &done));
        let trips = ping(&pinger, expected);
        done.store(true, Ordering::Relaxed);
        trips
    })
    .map_err(fail)?;
    trips.sort_by(f64::total_cmp);
    let median = if trips.len() < FEWEST { f64::NAN } else { trips[trips.len() / 2] };
    let direction = if side == Side::A { Direction::AToB } else { Direction::BToA };
    let tolerance = ROUND_TRIP_MS.max(expected * ROUND_TRIP_SHARE);
    Ok(Measurement::checked("round_trip_ms", direction, expected, median, tolerance))
}

/// Delays, and the time that small packets take to send.
fn expected_ms(link: &LinkConfig, bits: u64) -> f64 {
    let one_way = |parameters: &Parameters| -> Nanos {
        let nominal = parameters.rate.nominal();
        let sending = nominal.map_or(0, |rate| bits * 1_000_000_000 / rate.max(1));
        parameters.delay + sending
    };
    to_millis(link.parameters.iter().map(one_way).sum())
}

fn ping(socket: &UdpSocket, expected: f64) -> io::Result<Vec<f64>> {
    let count = (MOST_TIME_MS / expected.max(1.0)).clamp(11.0, 101.0) as usize;
    socket.set_read_timeout(Some(Duration::from_secs_f64((2.0 * expected + 200.0) / 1e3)))?;
    let (mut trips, mut buffer) = (Vec::new(), [0; PAYLOAD]);
    for number in 0..count as u64 {
        let mut packet = [0; PAYLOAD];
        packet[..8].copy_from_slice(&number.to_be_bytes());
        let sent = Instant::now();
        socket.send(&packet)?;
        loop {
            match socket.recv(&mut buffer) {
                // An answer to an earlier packet is too late to count.
                Ok(_) if buffer[..8] != packet[..8] => {}
                Ok(_) => {
                    trips.push(sent.elapsed().as_secs_f64() * 1e3);
                    break;
                }
                Err(error) if is_timeout(&error) => break,
                Err(error) => return Err(error),
            }
        }
        thread::sleep(GAP);
    }
    Ok(trips)
}

fn echo(socket: &UdpSocket, done: &AtomicBool) {
    let mut buffer = [0; 64];
    while !done.load(Ordering::Relaxed) {
        // The read times out every 100 ms (see `resolve`), to look at `done`.
        if let Ok(length) = socket.recv(&mut buffer) {
            // What cannot be sent counts as lost.
            let _ = socket.send(&buffer[..length]);
        }
    }
}
