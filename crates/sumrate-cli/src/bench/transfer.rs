//! Sends and receives the bytes of one stream of a measurement.

use std::io;
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::pattern;
use super::run::Run;
use crate::tunnel::TunnelStream;

/// The sender goes on for this long after its time, so that the receiver, whose clock started later,
/// has its full time.
const SLACK: Duration = Duration::from_millis(100);
/// Longest piece received at once.
const PIECE: usize = 256 << 10;

/// Sends until the plan's limit, ends the stream and waits until the receiver has ended it too.
pub(super) async fn send<S: TunnelStream>(
    run: &Run,
    stream: &mut S,
    index: u16,
) -> io::Result<u64> {
    let start = run.start(Instant::now());
    let until = run.plan.length.map(|length| start + run.plan.warmup + length + SLACK);
    let share = run.plan.share(index).unwrap_or(u64::MAX);
    let mut sent = 0;
    while sent < share && until.is_none_or(|until| Instant::now() < until) {
        let length = (share - sent).min(pattern::PIECE_MAX as u64) as usize;
        let mut piece = pattern::piece(sent, length);
        let write = stream.write_piece(&mut piece);
        let count = match until {
            Some(until) => match tokio::time::timeout_at(until.into(), write).await {
                Ok(result) => result?,
                Err(_) => break,
            },
            None => write.await?,
        };
        if count == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        sent += count as u64;
        run.count(count as u64);
    }
    stream.shutdown().await?;
    let mut nothing = [0; 1];
    let _ = stream.read(&mut nothing).await?;
    Ok(sent)
}

/// Receives to the end of the stream, counts and checks, and ends the other direction.
pub(super) async fn receive<S: TunnelStream>(run: &Run, stream: &mut S) -> io::Result<u64> {
    let mut received = 0;
    let mut damaged_at = None;
    let (mut counted, mut last) = (0, None);
    while let Some(piece) = stream.read_piece(PIECE).await? {
        let now = Instant::now();
        run.start(now);
        if run.meter.record(now, piece.len() as u64) {
            (counted, last) = (counted + piece.len() as u64, Some(now));
        }
        run.count(piece.len() as u64);
        if run.plan.verify && damaged_at.is_none() {
            damaged_at = pattern::first_difference(received, &piece);
        }
        received += piece.len() as u64;
    }
    let goodput = run.meter.stream_goodput_mbps(counted, last);
    run.stream_found(stream.delivery(), goodput, damaged_at);
    stream.shutdown().await?;
    Ok(received)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::run::Plan;

    fn plan(bytes: Option<u64>, length: Option<Duration>) -> Plan {
        Plan {
            streams: 1,
            warmup: Duration::ZERO,
            length,
            bytes,
            interval: Duration::from_millis(100),
            verify: true,
        }
    }

    #[tokio::test]
    async fn every_byte_arrives_and_is_right() {
        let (mut here, mut there) = tokio::io::duplex(100_000);
        let sending = Run::new(plan(Some(3_000_001), None));
        let receiving = Run::new(plan(Some(3_000_001), None));
        let (sent, received) =
            tokio::join!(send(&sending, &mut here, 0), receive(&receiving, &mut there));
        assert_eq!((sent.unwrap(), received.unwrap()), (3_000_001, 3_000_001));
        assert_eq!(receiving.found().damaged_at, None);
        assert_eq!(receiving.found().goodput_mbps.len(), 1);
        assert_eq!(receiving.meter.finish().bytes, 3_000_001);
    }

    #[tokio::test]
    async fn damage_is_found() {
        let (mut here, mut there) = tokio::io::duplex(100_000);
        let receiving = Run::new(plan(Some(1), None));
        let writer = async {
            let mut data = pattern::piece(0, 5000).to_vec();
            data[4321] ^= 0x80;
            here.write_all(&data).await.unwrap();
            here.shutdown().await.unwrap();
        };
        let ((), received) = tokio::join!(writer, receive(&receiving, &mut there));
        assert_eq!(received.unwrap(), 5000);
        assert_eq!(receiving.found().damaged_at, Some(4321));
    }

    #[tokio::test(start_paused = true)]
    async fn time_ends_a_sender_that_is_blocked() {
        let (mut here, mut there) = tokio::io::duplex(1000);
        let sending = Run::new(plan(None, Some(Duration::ZERO)));
        let reader = async {
            // Reads only after the sender has given up.
            sending.started().await;
            tokio::time::sleep(Duration::from_secs(1)).await;
            let mut all = Vec::new();
            there.read_to_end(&mut all).await.unwrap();
            there.shutdown().await.unwrap();
            all.len() as u64
        };
        let (sent, received) = tokio::join!(send(&sending, &mut here, 0), reader);
        assert_eq!(sent.unwrap(), received);
    }
}
