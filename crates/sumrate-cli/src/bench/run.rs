//! One measurement on one end: what was agreed, when it started, and whether it is over.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU16, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::watch;

use super::meter::Meter;
use crate::service::{BenchLimit, BenchRequest};
use crate::status::DelayReport;
use crate::tunnel::Delivery;

/// Most intervals that a report may have.
pub(super) const INTERVALS_MAX: usize = 500_000;
/// Most streams; a server lets a client have a few more open, for what else it does.
pub const STREAMS_MAX: u16 = 4000;
/// Longest warm-up, duration and interval, in seconds.
const SECONDS_MAX: f64 = 86_400.0;

/// What both ends agreed on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Plan {
    /// Number of streams.
    pub streams: u16,
    /// Time that is sent first and not counted.
    pub warmup: Duration,
    /// Counted time, if that is what ends the measurement.
    pub length: Option<Duration>,
    /// Bytes over all streams, if that is what ends it.
    pub bytes: Option<u64>,
    /// Length of an interval.
    pub interval: Duration,
    /// Whether the receiver checks the bytes.
    pub verify: bool,
}

/// Why a measurement was refused.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum PlanError {
    /// None or too many.
    #[error("{0} streams are not possible; use 1 to {STREAMS_MAX}")]
    Streams(u16),
    /// Not a time, or too long.
    #[error("{0} s is not possible; use up to 86400 s, and intervals of at least 1 ms")]
    Seconds(f64),
    /// Nothing to send.
    #[error("0 bytes cannot be measured")]
    NoBytes,
    /// Would make a huge report.
    #[error("more than 500000 intervals; use a longer --interval")]
    Intervals,
}

impl TryFrom<&BenchRequest> for Plan {
    type Error = PlanError;

    fn try_from(request: &BenchRequest) -> Result<Self, PlanError> {
        if !(1..=STREAMS_MAX).contains(&request.streams) {
            return Err(PlanError::Streams(request.streams));
        }
        let seconds = |value: f64, least: f64| match (least..=SECONDS_MAX).contains(&value) {
            true => Ok(Duration::from_secs_f64(value)),
            false => Err(PlanError::Seconds(value)),
        };
        let (length, bytes) = match request.limit {
            BenchLimit::Seconds(value) => (Some(seconds(value, 0.001)?), None),
            BenchLimit::Bytes(0) => return Err(PlanError::NoBytes),
            BenchLimit::Bytes(bytes) => (None, Some(bytes)),
        };
        let interval = seconds(request.interval_s, 0.001)?;
        let intervals = length.map_or(0.0, |length| length.as_secs_f64() / interval.as_secs_f64());
        if intervals > INTERVALS_MAX as f64 {
            return Err(PlanError::Intervals);
        }
        Ok(Self {
            streams: request.streams,
            warmup: seconds(request.warmup_s, 0.0)?,
            length,
            bytes,
            interval,
            verify: request.verify,
        })
    }
}

impl Plan {
    /// Bytes that stream `index` sends, if bytes are the limit.
    pub(super) fn share(&self, index: u16) -> Option<u64> {
        let streams = u64::from(self.streams);
        self.bytes.map(|bytes| bytes / streams + u64::from(u64::from(index) < bytes % streams))
    }
}

/// A measurement under way.
#[derive(Debug)]
pub(super) struct Run {
    pub(super) plan: Plan,
    pub(super) meter: Meter,
    /// Bytes sent or received so far, for a progress display.
    pub(super) moved: AtomicU64,
    open: AtomicU16,
    /// Data streams that the client has opened.
    arrived: watch::Sender<u16>,
    started: watch::Sender<Option<Instant>>,
    done: watch::Sender<bool>,
    found: Mutex<Found>,
}

/// What the streams of a receiver found.
#[derive(Debug, Clone, Default)]
pub(super) struct Found {
    /// Worst in-order delay of any stream.
    pub(super) delay: DelayReport,
    /// Sum of their buffers' peaks.
    pub(super) buffer_peak: u64,
    /// Goodput of each.
    pub(super) goodput_mbps: Vec<f64>,
    /// First damaged offset.
    pub(super) damaged_at: Option<u64>,
}

impl Run {
    pub(super) fn new(plan: Plan) -> Self {
        Self {
            plan,
            meter: Meter::new(plan.warmup, plan.length, plan.interval),
            moved: AtomicU64::new(0),
            open: AtomicU16::new(plan.streams),
            arrived: watch::Sender::new(0),
            started: watch::Sender::new(None),
            done: watch::Sender::new(false),
            found: Mutex::default(),
        }
    }

    /// The start of the clock: the first call decides.
    pub(super) fn start(&self, now: Instant) -> Instant {
        self.started.send_if_modified(|started| {
            let first = started.is_none();
            started.get_or_insert(now);
            first
        });
        self.started.borrow().unwrap_or(now)
    }

    pub(super) async fn started(&self) -> Instant {
        let mut receiver = self.started.subscribe();
        match receiver.wait_for(Option::is_some).await.map(|value| *value) {
            Ok(Some(instant)) => instant,
            _ => Instant::now(),
        }
    }

    /// One more data stream is there; waits for all of them or the end, so that none is measured
    /// while others are still being opened.
    pub(super) async fn stream_arrived(&self) {
        self.arrived.send_modify(|count| *count += 1);
        let mut arrived = self.arrived.subscribe();
        tokio::select! {
            _ = arrived.wait_for(|count| *count >= self.plan.streams) => {}
            () = self.done() => {}
        }
    }

    /// One stream has ended; the last ends the measurement.
    pub(super) fn stream_ended(&self) {
        if self.open.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.finish();
        }
    }

    /// Ends the measurement.
    pub(super) fn finish(&self) {
        self.done.send_replace(true);
    }

    /// Waits for the end.
    pub(super) async fn done(&self) {
        let _ = self.done.subscribe().wait_for(|done| *done).await;
    }

    /// Takes in what one stream's receiver knows at its end.
    pub(super) fn stream_found(
        &self,
        delivery: Option<Delivery>,
        goodput_mbps: f64,
        damaged_at: Option<u64>,
    ) {
        let Ok(mut found) = self.found.lock() else { return };
        if let Some(delivery) = delivery {
            found.delay.p50 = found.delay.p50.max(delivery.p50_ms);
            found.delay.p99 = found.delay.p99.max(delivery.p99_ms);
            found.delay.max = found.delay.max.max(delivery.max_ms);
            found.buffer_peak += delivery.buffer_peak;
        }
        found.goodput_mbps.push(goodput_mbps);
        found.damaged_at = found.damaged_at.or(damaged_at);
    }

    /// What the streams that have ended found.
    pub(super) fn found(&self) -> Found {
        self.found.lock().map(|found| found.clone()).unwrap_or_default()
    }

    pub(super) fn count(&self, bytes: u64) {
        self.moved.fetch_add(bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::service::BenchDirection;

    fn request() -> BenchRequest {
        BenchRequest {
            id: 1,
            direction: BenchDirection::ClientToServer,
            streams: 3,
            limit: BenchLimit::Bytes(10),
            warmup_s: 0.0,
            interval_s: 0.1,
            verify: true,
        }
    }

    #[test]
    fn impossible_requests_are_refused() {
        let refused = |change: fn(&mut BenchRequest)| {
            let mut request = request();
            change(&mut request);
            Plan::try_from(&request).is_err()
        };
        assert!(!refused(|_| {}));
        assert!(refused(|r| r.streams = 0));
        assert!(refused(|r| r.streams = STREAMS_MAX + 1));
        assert!(refused(|r| r.limit = BenchLimit::Bytes(0)));
        assert!(refused(|r| r.limit = BenchLimit::Seconds(f64::NAN)));
        assert!(refused(|r| r.limit = BenchLimit::Seconds(-1.0)));
        assert!(refused(|r| r.warmup_s = f64::INFINITY));
        assert!(refused(|r| r.interval_s = 0.0));
        assert!(refused(|r| {
            r.limit = BenchLimit::Seconds(86_400.0);
            r.interval_s = 0.001;
        }));
    }

    #[test]
    fn shares_add_up() {
        let plan = Plan::try_from(&request()).unwrap();
        let shares: Vec<_> = (0..3).map(|index| plan.share(index).unwrap()).collect();
        assert_eq!(shares, [4, 3, 3]);
    }
}
