//! Rate of one direction: somewhat more UDP than it carries, in super-packets; what arrives is counted as wire bytes.

use std::io;
use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::socket::{setsockopt, sockopt};

use super::CalibrateError;
use super::endpoint::{Endpoints, is_timeout, resolve};
use super::verdict::{Measurement, rate_tolerance};
use crate::config::parameters::Parameters;
use crate::config::{Direction, LinkConfig, QueueLimit, RateSetting, Side};

/// Offered load over the set rate.
const OVERLOAD: f64 = 1.15;
/// Offered where no rate is set, bits per second.
const UNLIMITED_OFFER: f64 = 10e9;
const MOST_PAYLOAD: usize = 65_000;
const MOST_SEGMENTS: usize = 64;
/// The queue fills meanwhile.
const WARM_UP: Duration = Duration::from_millis(300);

/// Measures the rate in `direction` for `duration`.
pub(super) fn measure(
    link: &LinkConfig,
    ends: &Endpoints,
    direction: Direction,
    duration: Duration,
) -> Result<Measurement, CalibrateError> {
    let fail = |source| CalibrateError::Socket {
        link: link.name.clone(),
        operation: "measuring the rate",
        source,
    };
    let parameters = &link.parameters[direction.index()];
    let nominal = parameters.rate.nominal();
    let payload = link.mtu as usize - ends.header_bytes();
    let [sender, receiver] = ends.pair(link, Side::source(direction))?;
    if parameters.loss < 1.0 {
        resolve(link, [&sender, &receiver])?;
    }
    prepare(&sender, &receiver, payload).map_err(fail)?;
    let segments = segments_at_once(parameters, nominal, link.mtu as usize, payload);
    let offer = nominal.map_or(UNLIMITED_OFFER, |rate| rate as f64 * OVERLOAD);
    let interval = Duration::from_secs_f64((segments * link.mtu as usize * 8) as f64 / offer);
    let done = AtomicBool::new(false);
    let per_second = thread::scope(|scope| {
        scope.spawn(|| flood(&sender, &vec![0; segments * payload], interval, &done));
        let counted = count(&receiver, duration);
        done.store(true, Ordering::Relaxed);
        counted
    })
    .map_err(fail)?;
    let packets = per_second / payload as f64;
    let wire = packets * f64::from(link.mtu) * 8.0 / 1e6;
    let counted = (packets * duration.as_secs_f64()) as u64;
    Ok(match (&parameters.rate, nominal) {
        (RateSetting::Constant(_), Some(rate)) => {
            let expected = rate as f64 / 1e6 * (1.0 - parameters.loss);
            let tolerance =
                rate_tolerance(expected, parameters.loss, parameters.loss_burst, counted);
            Measurement::checked("rate_mbps", direction, expected, wire, tolerance)
        }
        _ => Measurement::reported("rate_mbps", direction, wire),
    })
}

/// The sender's packets are cut into segments by the kernel, the receiver's are handed over together.
fn prepare(sender: &UdpSocket, receiver: &UdpSocket, payload: usize) -> io::Result<()> {
    let segment = i32::try_from(payload).map_err(io::Error::other)?;
    setsockopt(sender, sockopt::UdpGsoSegment, &segment)?;
    setsockopt(receiver, sockopt::UdpGroSegment, &true)?;
    receiver.set_read_timeout(Some(Duration::from_millis(200)))
}

/// A super-packet no larger than a quarter of the queue.
fn segments_at_once(
    parameters: &Parameters,
    nominal: Option<u64>,
    mtu: usize,
    payload: usize,
) -> usize {
    let most = (MOST_PAYLOAD / payload).clamp(1, MOST_SEGMENTS);
    let room = match (parameters.queue, nominal) {
        (QueueLimit::Packets(packets), _) => usize::try_from(packets / 4).unwrap_or(most),
        (QueueLimit::Time(time), Some(rate)) => {
            (rate as f64 * time as f64 / 1e9 / 32.0) as usize / mtu
        }
        (QueueLimit::Time(_), None) => most,
    };
    room.clamp(1, most)
}

/// Sends `packet` every `interval`, making up for pauses.
fn flood(socket: &UdpSocket, packet: &[u8], interval: Duration, done: &AtomicBool) {
    const MOST_BEHIND: Duration = Duration::from_millis(20);
    let mut next = Instant::now();
    while !done.load(Ordering::Relaxed) {
        let now = Instant::now();
        if next > now {
            thread::sleep(next - now);
        }
        next = next.max(now.checked_sub(MOST_BEHIND).unwrap_or(now)) + interval;
        // A full device queue only means that the load is there.
        let _ = socket.send(packet);
    }
}

/// Payload bytes per second, from the first packet after the warm-up to the last.
fn count(socket: &UdpSocket, duration: Duration) -> io::Result<f64> {
    let mut buffer = vec![0; 65_536];
    let begin = Instant::now() + WARM_UP;
    let (mut first, mut last, mut bytes) = (None, begin, 0);
    while last < begin + duration && Instant::now() < begin + 2 * duration {
        let length = match socket.recv(&mut buffer) {
            Ok(length) => length,
            Err(error) if is_timeout(&error) => continue,
            Err(error) => return Err(error),
        };
        let now = Instant::now();
        match first {
            _ if now < begin => {}
            None => first = Some(now),
            Some(_) => (last, bytes) = (now, bytes + length),
        }
    }
    let spent = first.map_or(0.0, |first| (last - first).as_secs_f64());
    Ok(if spent > 0.0 { bytes as f64 / spent } else { 0.0 })
}
