//! Rate, delays and queue of a path, from TCP_INFO and the peer's answers.
//!
//! Rule: F7.

use core::time::Duration;

use fbdt_units::{Instant, SubflowSample, bytes_in, time_for};

use super::RateEstimate;
use super::ack_aggregation::AckAggregation;
use super::response::Response;
use crate::scale::NOISE;

/// A path is silent if in the time of so many segments none is acknowledged.
const SILENT_SEGMENTS: u64 = 4;

/// Rate and delays of a path, over all its subflows.
#[derive(Clone, Debug)]
pub(crate) struct PathModel {
    rate: RateEstimate,
    base: Duration,
    there: Option<Duration>,
    srtt: Duration,
    /// Bytes between this TCP and the peer's at the last sample.
    under_way: u64,
    gathered: AckAggregation,
    response: Response,
}

impl Default for PathModel {
    fn default() -> Self {
        Self {
            rate: RateEstimate::default(),
            base: Duration::from_millis(100),
            there: None,
            srtt: Duration::ZERO,
            under_way: 0,
            gathered: AckAggregation::default(),
            response: Response::default(),
        }
    }
}

impl PathModel {
    /// A new subflow counts its bytes from zero; the link is the same one.
    pub(super) fn restart(&mut self) {
        self.rate.restart();
        self.gathered.restart();
        self.response.restart();
    }

    /// Takes in a sample of the subflow. Returns it with the path's own smallest RTT.
    pub(super) fn update(&mut self, now: Instant, sample: &SubflowSample) -> SubflowSample {
        self.gathered.update(now, sample);
        let sample = self.gathered.corrected(sample);
        (self.base, self.srtt) = (sample.base_rtt(), sample.srtt);
        let delivered = sample.acked_total + sample.sacked;
        let rtts = (self.srtt, sample.rttvar, self.base);
        self.response.update(now, self.under_way, delivered, rtts);
        self.under_way = sample.in_flight.saturating_sub(sample.sacked);
        self.rate.update(now, &sample, self.has_queue());
        sample
    }

    /// The smallest RTT.
    pub(crate) const fn base(&self) -> Duration {
        self.base
    }

    /// One-way delay to the peer without queues; half the smallest RTT until it was compared.
    pub(super) fn there(&self) -> Duration {
        self.there.unwrap_or(self.base / 2).min(self.base)
    }

    /// Enters the one-way delay without queues.
    pub(crate) const fn set_there(&mut self, there: Option<Duration>) {
        self.there = there;
    }

    /// How long acknowledgements are gathered: bytes that wait for one have arrived.
    pub(crate) fn gathered(&self) -> Duration {
        self.gathered.hold()
    }

    /// Whether acknowledgements are gathered for sure.
    pub(super) fn is_gathered(&self) -> bool {
        self.gathered.is_certain()
    }

    /// Delay beyond the smallest RTT that is no queue of this session: gathered acknowledgements, jitter,
    /// the queues of others.
    pub(crate) fn spread(&self) -> Duration {
        self.gathered.hold().max(self.response.spread())
    }

    /// The queue: what the RTT shows beyond the smallest one and the spread.
    pub(super) fn queue(&self) -> Duration {
        self.srtt.saturating_sub(self.base + self.spread())
    }

    /// Longest queue that the path may have: as long as the path, so that a loss, which takes a third of
    /// TCP's window, does not leave it empty; over short paths more, as others' queues are several RTTs there.
    pub(super) fn allowed_queue(&self) -> Duration {
        (self.base + self.base.min(NOISE * 2)).max(NOISE)
    }

    /// Whether there is a queue of more than half the allowed one.
    pub(super) fn has_queue(&self) -> bool {
        self.queue() > self.allowed_queue() / 2
    }

    /// Rate of the link, bytes per second.
    pub(crate) fn rate(&self) -> f64 {
        self.rate.link(self.base)
    }

    /// Rate that was delivered lately, at most the link's.
    pub(super) fn delivered_rate(&self) -> f64 {
        self.rate.delivered(self.base)
    }

    /// Time in which a few segments are acknowledged at the link's rate: silence for less says nothing.
    pub(super) fn patience(&self, mss: u32) -> Duration {
        time_for(SILENT_SEGMENTS * u64::from(mss), self.rate())
    }

    /// Whether the rate is still being found out.
    pub(super) fn is_growing(&self, now: Instant) -> bool {
        self.rate.is_ramping(now, self.base)
    }

    /// Bytes under way at the link's rate with the spread and a queue as long as allowed.
    pub(super) fn full(&self) -> u64 {
        let time = self.base + self.spread() + self.allowed_queue();
        bytes_in(self.rate() * self.response.swing(), time)
    }
}

#[cfg(test)]
impl PathModel {
    /// A path of which it is known that its RTT shows a queue.
    pub(super) fn queued() -> Self {
        Self { response: Response::of_a_queue(), ..Self::default() }
    }
}
