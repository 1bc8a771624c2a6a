//! Loss of one direction: small packets well below the link's rate, counted at the other end.

use std::io;
use std::net::UdpSocket;
use std::thread;
use std::time::{Duration, Instant};

use super::CalibrateError;
use super::endpoint::{Endpoints, is_timeout, resolve};
use super::verdict::{Measurement, loss_tolerance, packets_for};
use crate::config::parameters::Parameters;
use crate::config::{Direction, LinkConfig, QueueLimit, Side};
use crate::time::to_millis;

const PAYLOAD: usize = 32;
/// Most packets per second: more would measure the machine.
const MOST_PER_SECOND: f64 = 40_000.0;
/// Share of the link's rate that is used.
const LOAD: f64 = 0.4;
const TICK: Duration = Duration::from_millis(1);

/// Measures the loss in `direction`; takes up to four times `duration`.
pub(super) fn measure(
    link: &LinkConfig,
    ends: &Endpoints,
    direction: Direction,
    duration: Duration,
) -> Result<Measurement, CalibrateError> {
    let fail = |source| CalibrateError::Socket {
        link: link.name.clone(),
        operation: "measuring the loss",
        source,
    };
    let parameters = &link.parameters[direction.index()];
    let [sender, receiver] = ends.pair(link, Side::source(direction))?;
    if parameters.loss < 1.0 {
        resolve(link, [&sender, &receiver])?;
    }
    let bits = ((PAYLOAD + ends.header_bytes()) * 8) as f64;
    let nominal = parameters.rate.nominal();
    let per_second =
        nominal.map_or(MOST_PER_SECOND, |rate| (rate as f64 * LOAD / bits).min(MOST_PER_SECOND));
    let possible = per_second * duration.as_secs_f64() * 4.0;
    let count = packets_for(parameters.loss, parameters.loss_burst).min(possible as u64).max(10);
    let silence = Duration::from_secs_f64((to_millis(parameters.delay) + 500.0) / 1e3);
    receiver.set_read_timeout(Some(silence)).map_err(fail)?;
    let burst = burst_limit(parameters, nominal, bits);
    let received = thread::scope(|scope| {
        let counter = scope.spawn(|| count_packets(&receiver, count));
        send_paced(&sender, count, per_second, burst)?;
        counter.join().unwrap_or_else(|_| Err(io::Error::other("the counting thread ended early")))
    })
    .map_err(fail)?;
    let lost = 1.0 - received as f64 / count as f64;
    let tolerance = loss_tolerance(parameters.loss, parameters.loss_burst, count);
    Ok(Measurement::checked("loss", direction, parameters.loss, lost, tolerance))
}

/// Packets that may be sent at once without filling the queue.
fn burst_limit(parameters: &Parameters, nominal: Option<u64>, bits: f64) -> u64 {
    let room = match (parameters.queue, nominal) {
        (QueueLimit::Packets(packets), _) => packets / 4,
        (QueueLimit::Time(time), Some(rate)) => {
            (rate as f64 * time as f64 / 1e9 / bits / 4.0) as u64
        }
        (QueueLimit::Time(_), None) => u64::MAX,
    };
    room.clamp(1, 200)
}

fn send_paced(socket: &UdpSocket, count: u64, per_second: f64, burst: u64) -> io::Result<()> {
    let start = Instant::now();
    // At a low rate one packet is less often due than every tick.
    let tick = TICK.max(Duration::from_secs_f64(1.0 / per_second));
    let mut sent = 0;
    let mut skipped = 0.0;
    while sent < count {
        let due = start.elapsed().as_secs_f64() * per_second - skipped;
        let behind = (due as u64).saturating_sub(sent);
        for _ in 0..behind.min(burst).min(count - sent) {
            socket.send(&[0; PAYLOAD])?;
            sent += 1;
        }
        // After a pause of this thread, do not make up for more than a burst.
        skipped += behind.saturating_sub(burst) as f64;
        thread::sleep(tick);
    }
    Ok(())
}

/// Counts packets until all have come or none comes any more.
fn count_packets(socket: &UdpSocket, all: u64) -> io::Result<u64> {
    let mut buffer = [0; 64];
    let mut received = 0;
    while received < all {
        match socket.recv(&mut buffer) {
            Ok(PAYLOAD) => received += 1,
            // A packet of `resolve`.
            Ok(_) => {}
            Err(error) if is_timeout(&error) => break,
            Err(error) => return Err(error),
        }
    }
    Ok(received)
}
