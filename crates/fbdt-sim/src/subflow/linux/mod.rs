//! A TCP that finds losses, times out and measures as Linux does.
//!
//! Not modelled: delayed acknowledgements, proportional rate reduction (the window shrinks at once), and
//! a window that is forgotten after an idle time.

mod bbr;
mod burst;
mod control;
mod rack;
mod rtt;

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, VecDeque};
use std::time::Duration;

use fbdt_proto::{Instant, SubflowSample};

use self::burst::{Burst, parts};
use self::control::{Acked, Control};
use self::rack::{Patience, Rack};
use self::rtt::{MIN_RTO, Rtt};
use crate::delivery_rate::DeliveryRate;
use crate::growth::{MSS, TcpGrowth};
use crate::link::Link;

/// Unsent bytes that the socket takes (TCP_NOTSENT_LOWAT).
const UNSENT: usize = 128 << 10;
/// TCP hands at most this much to the device at once, and what its pacing rate is in [`TOGETHER`].
const LARGEST_BURST: usize = 44 * MSS;
const TOGETHER: f64 = 1.0 / 1024.0;
/// Below this rate, in bytes per second, BBR sends a segment at a time.
const SLOW: f64 = 150_000.0;
/// How often a used window is looked at, at least.
const USED: Duration = Duration::from_millis(1);

/// What the timer does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Timer {
    /// The last segment is sent again, so that its acknowledgement tells what is lost.
    Probe(Instant),
    /// Everything that is not acknowledged is lost.
    Rto(Instant),
}

/// What is being repaired.
#[derive(Debug)]
struct Recovery {
    /// It is over when all bursts before this one are acknowledged.
    until: u64,
    timed_out: bool,
    /// Bursts that were taken for lost, and those of them that arrived all the same.
    marked: u64,
    needless: u64,
}

/// Sender and receiver of one direction.
#[derive(Debug)]
pub(crate) struct LinuxTcp {
    unsent: VecDeque<u8>,
    flight: VecDeque<Burst>,
    /// Number of the first burst of `flight`.
    base: u64,
    /// Bursts from the first one on that the peer's program has.
    delivered: usize,
    /// When bursts arrive, their numbers, and whether it is their first transmission.
    arrivals: BinaryHeap<Reverse<(Instant, u64, bool)>>,
    /// When acknowledgements come, each of all that had arrived at a time.
    acks: BinaryHeap<Reverse<(Instant, Instant)>>,
    /// Bytes that are neither acknowledged nor known to be lost.
    in_flight: usize,
    /// Bytes of all bursts.
    outstanding: u64,
    /// Bursts that are known to be lost and not sent again yet.
    lost: BTreeSet<u64>,
    /// The last burst that is acknowledged.
    highest: u64,
    acked: u64,
    sacked: u64,
    control: Control,
    rack: Rack,
    recovery: Option<Recovery>,
    /// The last one, which may still turn out to have been needless.
    ended: Option<Recovery>,
    next_notice: Option<Instant>,
    timer: Option<Timer>,
    /// Timeouts since the last acknowledgement, and whether the tail was probed since.
    backoff: u32,
    probed: bool,
    rtt: Rtt,
    rate: DeliveryRate,
    sent: u64,
    retransmitted: u64,
    /// Most that was in flight since about an RTT ago.
    used: usize,
    used_since: Instant,
    /// Bytes that a proxy has acknowledged and keeps.
    held: Vec<u8>,
    /// When the next burst may leave, if what is sent is spread over the RTT.
    pace: Option<Instant>,
    receive_buffer: u64,
}

impl LinuxTcp {
    pub(crate) fn new(now: Instant, rtt: Duration, growth: TcpGrowth) -> Self {
        let control = match growth {
            TcpGrowth::Bbr => Control::bbr(now),
            _ => Control::cubic(),
        };
        let pace = control.is_always_paced().then_some(Instant::ZERO);
        Self {
            unsent: VecDeque::new(),
            flight: VecDeque::new(),
            base: 0,
            delivered: 0,
            arrivals: BinaryHeap::new(),
            acks: BinaryHeap::new(),
            in_flight: 0,
            outstanding: 0,
            lost: BTreeSet::new(),
            highest: 0,
            acked: 0,
            sacked: 0,
            control,
            rack: Rack::new(),
            recovery: None,
            ended: None,
            next_notice: None,
            timer: None,
            backoff: 0,
            probed: false,
            rtt: Rtt::new(now, rtt),
            rate: DeliveryRate::new(now),
            sent: 0,
            retransmitted: 0,
            used: 0,
            used_since: now,
            held: Vec::new(),
            pace,
            receive_buffer: u64::MAX,
        }
    }

    pub(crate) fn pace(&mut self, paced: bool) {
        self.pace = (paced || self.control.is_always_paced()).then_some(Instant::ZERO);
    }

    pub(crate) const fn received_into(mut self, buffer: u64) -> Self {
        self.receive_buffer = buffer;
        self
    }

    pub(crate) fn has_room(&self) -> bool {
        self.unsent.len() < UNSENT
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) {
        if self.unsent.is_empty() && (self.in_flight as f64) < self.control.window {
            self.rate.limit(self.acked + self.sacked, self.in_flight);
        }
        self.unsent.extend(bytes);
    }

    pub(crate) fn is_flushed(&self) -> bool {
        self.unsent.is_empty() && self.delivered == self.flight.len()
    }

    pub(crate) fn drop_unsent(&mut self) {
        self.unsent.clear();
        let whole = self.flight.iter().take_while(|burst| burst.arrival.is_some()).count();
        self.flight.truncate(whole);
        self.delivered = self.delivered.min(whole);
        self.outstanding = self.flight.iter().map(|burst| burst.bytes.len() as u64).sum();
        self.lost.clear();
        (self.next_notice, self.timer) = (None, None);
    }

    pub(crate) fn outstanding(&self) -> u64 {
        self.outstanding + self.unsent.len() as u64
    }

    /// Sends what the congestion window allows: lost bursts first.
    pub(crate) fn pump(&mut self, now: Instant, link: &mut Link, back: &mut Link) {
        while self.may_send() && self.pace.is_none_or(|at| at <= now) {
            let rate = self.control.pacing_rate(self.rtt.smoothed, self.in_flight);
            let room = self.room();
            let size = match self.lost.first() {
                Some(&number) => self.send_again(now, number, link, back),
                None => self.send_new(now, room, link, back),
            };
            let mut time = size as f64 / rate.max(1.0);
            // A burst is sent again as a whole, also where the window after a timeout is smaller.
            if size > room {
                time = time.min(self.rtt.time_to_grow(size as f64 / room as f64));
            }
            let time = Duration::from_secs_f64(time.min(10.0));
            self.pace = self.pace.map(|at| at.max(now) + time);
        }
        self.used = self.used.max(self.in_flight);
    }

    fn may_send(&self) -> bool {
        let wanted = !self.lost.is_empty()
            || !self.unsent.is_empty() && self.outstanding < self.receive_buffer;
        wanted && (self.in_flight as f64) < self.control.window
    }

    /// Bytes that the congestion window has room for: at least one segment.
    fn room(&self) -> usize {
        ((self.control.window - self.in_flight as f64) as usize).max(MSS)
    }

    /// Bytes that are sent together: a millisecond of the pacing rate.
    fn quantum(&self) -> usize {
        let rate = self.control.pacing_rate(self.rtt.smoothed, self.in_flight);
        let least = if self.control.is_always_paced() && rate < SLOW { MSS } else { 2 * MSS };
        ((rate * TOGETHER) as usize).clamp(least, LARGEST_BURST)
    }

    fn send_new(&mut self, now: Instant, room: usize, link: &mut Link, back: &mut Link) -> usize {
        let buffer = usize::try_from(self.receive_buffer - self.outstanding).unwrap_or(usize::MAX);
        let whole = self.unsent.len().min(self.quantum()).min(buffer);
        let size = if room < whole { (room / MSS).max(1) * MSS } else { whole }.min(whole);
        let departure = self.rate.depart(now, self.acked + self.sacked, self.in_flight == 0);
        let crossing = link.cross(now, size);
        for (part, arrival) in parts(size, crossing.as_ref()) {
            let number = self.base + self.flight.len() as u64;
            let burst = Burst {
                bytes: self.take_unsent(part.len()),
                sent: now,
                departure,
                arrival,
                given: 0,
                flying: true,
                acked: false,
                again: false,
            };
            self.flight.push_back(burst);
            self.depart(now, number, part.len(), (arrival.map(|(_, last)| last), true), back);
        }
        self.outstanding += size as u64;
        self.arm(now);
        size
    }

    /// The first bytes of what is unsent.
    fn take_unsent(&mut self, size: usize) -> Vec<u8> {
        let (first, second) = self.unsent.as_slices();
        let part = size.min(first.len());
        let bytes = [&first[..part], &second[..size - part]].concat();
        self.unsent.drain(..size);
        bytes
    }

    fn send_again(&mut self, now: Instant, number: u64, link: &mut Link, back: &mut Link) -> usize {
        self.lost.remove(&number);
        let departure = self.rate.depart(now, self.acked + self.sacked, self.in_flight == 0);
        let index = (number - self.base) as usize;
        let Some(burst) = self.flight.get_mut(index) else { return MSS };
        let size = burst.bytes.len();
        // A burst is sent again as a whole also where a part of it is lost again.
        let arrival = link.cross(now, size).filter(|c| c.lost.is_empty());
        if burst.flying {
            self.in_flight -= size;
        }
        (burst.sent, burst.departure) = (now, departure);
        (burst.again, burst.flying) = (true, true);
        if let Some(crossing) = &arrival {
            let sooner = burst.arrival.is_none_or(|(_, last)| crossing.last < last);
            if sooner {
                burst.arrival = Some((crossing.first, crossing.last));
            }
        }
        self.retransmitted += size as u64;
        self.depart(now, number, size, (arrival.map(|c| c.last), false), back);
        if self.timer.is_none() {
            self.arm(now);
        }
        size
    }

    /// A burst is on its way, and arrives then unless it is lost.
    fn depart(
        &mut self,
        now: Instant,
        number: u64,
        size: usize,
        (arrives, original): (Option<Instant>, bool),
        back: &mut Link,
    ) {
        self.sent += size as u64;
        self.in_flight += size;
        self.rack.sent(now, number);
        if let Some(at) = arrives {
            self.arrivals.push(Reverse((at, number, original)));
            self.acks.push(Reverse((back.cross_back(at), at)));
        }
    }

    /// Bytes that reach the peer by now, in order.
    pub(crate) fn deliver(&mut self, now: Instant, link: &Link, out: &mut Vec<u8>) {
        let out = if link.parameters.held {
            &mut self.held
        } else {
            out.append(&mut self.held);
            out
        };
        while let Some(burst) = self.flight.get_mut(self.delivered) {
            let due = burst.due(now);
            out.extend_from_slice(&burst.bytes[burst.given..due]);
            burst.given = due;
            if due < burst.bytes.len() {
                break;
            }
            self.delivered += 1;
        }
        // Where a jitter leaves no delay, the acknowledgement came at once.
        self.forget_acknowledged();
    }

    /// Acknowledgements, what they tell to be lost, and timers.
    pub(crate) fn advance(&mut self, now: Instant, link: &mut Link, back: &mut Link) {
        while let Some(&Reverse((at, arrival))) = self.acks.peek()
            && at <= now
        {
            self.acks.pop();
            // One that is lost in a blackout is covered by the next one.
            if !back.is_dark(now) {
                self.acknowledge(now, arrival);
            }
        }
        if self.next_notice.is_some_and(|at| at <= now) {
            self.notice_losses(now);
        }
        if now.saturating_since(self.used_since) >= self.rtt.smoothed.max(USED) {
            self.used_since = now;
            self.used = self.in_flight;
        }
        match self.timer {
            Some(Timer::Probe(at)) if at <= now => self.probe(now, link, back),
            Some(Timer::Rto(at)) if at <= now => self.time_out(now),
            _ => {}
        }
        self.pump(now, link, back);
    }

    /// An acknowledgement is there of all that had arrived by `arrival`.
    fn acknowledge(&mut self, now: Instant, arrival: Instant) {
        let mut news = News::default();
        while let Some(&Reverse(arrived)) = self.arrivals.peek()
            && arrived.0 <= arrival
        {
            self.arrivals.pop();
            self.note_arrival(now, arrived, &mut news);
        }
        let Some((departure, sent, first)) = news.newest else { return };
        if let Some(oldest) = news.oldest {
            self.rtt.measure(now, now.saturating_since(oldest));
        }
        // The smallest RTT is of a burst's first segment, which does not wait for the others.
        let rtt = first.map(|first| first.saturating_since(sent));
        if let Some(rtt) = rtt {
            self.rtt.least = self.rtt.least.min(rtt);
        }
        let delivered = self.acked + self.sacked;
        self.rate.acknowledge(now, delivered, departure, self.rtt.least);
        self.forget_acknowledged();
        let losing = self.recovery.is_some();
        self.control.acked(&Acked {
            now,
            bytes: news.bytes as f64,
            delivered,
            departed_at: departure.acked(),
            first: rtt.map(|rtt| (sent, rtt)),
            srtt: self.rtt.smoothed,
            min_rtt: self.rtt.least,
            in_flight: self.in_flight,
            used: self.used,
            quantum: self.quantum(),
            rate: self.rate.rate(),
            limited: self.rate.is_limited(),
            losing,
            timed_out: self.recovery.as_ref().is_some_and(|recovery| recovery.timed_out),
        });
        (self.backoff, self.probed) = (0, false);
        self.notice_losses(now);
        self.arm(now);
    }

    fn note_arrival(
        &mut self,
        now: Instant,
        (arrived, number, original): (Instant, u64, bool),
        news: &mut News,
    ) {
        let burst = number.checked_sub(self.base).map(|index| self.flight.get_mut(index as usize));
        let Some(Some(burst)) = burst.filter(|b| b.as_ref().is_none_or(|b| !b.acked)) else {
            // Only what was sent again arrives twice.
            self.rack.duplicate(now, self.rtt.smoothed);
            if original {
                self.note_needless();
            }
            return;
        };
        let size = burst.bytes.len();
        burst.acked = true;
        if std::mem::take(&mut burst.flying) {
            self.in_flight -= size;
        }
        let again = burst.again;
        let waiting = self.lost.remove(&number);
        let marked = again || waiting;
        let first = burst.first_segment().unwrap_or(arrived).min(arrived);
        let back = now.saturating_since(arrived);
        if !marked {
            news.oldest = Some(news.oldest.map_or(burst.sent, |at| at.min(burst.sent)));
        }
        if news.newest.as_ref().is_none_or(|(_, sent, _)| *sent <= burst.sent) {
            news.newest = Some((burst.departure, burst.sent, (!marked).then_some(first + back)));
        }
        let rtt = now.saturating_since(burst.sent);
        let sent = burst.sent;
        if !again || (!original && rtt >= self.rtt.least) {
            self.rack.acked(now, sent, number, !marked && number < self.highest);
        }
        self.highest = self.highest.max(number);
        self.sacked += size as u64;
        news.bytes += size;
        if marked && original {
            self.note_needless();
        }
    }

    /// A burst that was taken for lost has arrived.
    fn note_needless(&mut self) {
        let Some(recovery) = self.recovery.as_mut().or(self.ended.as_mut()) else { return };
        recovery.needless += 1;
        if recovery.needless >= recovery.marked {
            (self.recovery, self.ended) = (None, None);
            self.control.undo();
        }
    }

    /// Bursts that are acknowledged in order leave the flight.
    fn forget_acknowledged(&mut self) {
        while self.delivered > 0
            && let Some(burst) = self.flight.pop_front_if(|burst| burst.acked)
        {
            self.base += 1;
            self.delivered -= 1;
            let size = burst.bytes.len() as u64;
            self.acked += size;
            self.sacked -= size;
            self.outstanding -= size;
        }
        if self.recovery.as_ref().is_some_and(|recovery| recovery.until <= self.base) {
            self.ended = self.recovery.take();
            self.rack.recovered();
            self.control.recovered();
        }
    }

    fn notice_losses(&mut self, now: Instant) {
        let patience = Patience {
            min_rtt: self.rtt.least,
            srtt: self.rtt.smoothed,
            recovering: self.recovery.is_some(),
            sacked_segments: self.sacked / MSS as u64,
        };
        let (base, flight) = (self.base, &self.flight);
        let flies = |sent: Instant, number: u64| {
            let index = number.checked_sub(base).map(|index| index as usize);
            index.and_then(|i| flight.get(i)).is_some_and(|b| b.flying && b.sent == sent)
        };
        let (lost, next) = self.rack.lost(now, patience, flies);
        self.next_notice = next;
        if lost.is_empty() {
            return;
        }
        let before = self.in_flight;
        for number in &lost {
            self.lose(*number);
        }
        let bytes = before - self.in_flight;
        if self.recovery.is_none() {
            self.control.lose(false, true, self.in_flight);
            self.recovery = Some(self.recovery_from_now(false));
        } else {
            self.control.lost(bytes);
        }
        if let Some(recovery) = &mut self.recovery {
            recovery.marked += lost.len() as u64;
        }
    }

    fn recovery_from_now(&self, timed_out: bool) -> Recovery {
        let until = self.base + self.flight.len() as u64;
        Recovery { until, timed_out, marked: 0, needless: 0 }
    }

    fn lose(&mut self, number: u64) {
        let Some(burst) = self.flight.get_mut((number - self.base) as usize) else { return };
        burst.flying = false;
        self.in_flight -= burst.bytes.len();
        self.lost.insert(number);
    }

    /// Sets the timer for what is in flight.
    fn arm(&mut self, now: Instant) {
        let rto = self.rtt.timeout(self.backoff);
        let unacked = self.outstanding > self.sacked;
        self.timer = if !unacked {
            None
        } else if self.recovery.is_some() || self.probed || self.backoff > 0 || self.sacked > 0 {
            Some(Timer::Rto(now + rto))
        } else {
            // A single segment's acknowledgement may be delayed.
            let delayed = if self.in_flight <= MSS { MIN_RTO } else { Duration::from_millis(2) };
            Some(Timer::Probe(now + (self.rtt.smoothed * 2 + delayed).min(rto)))
        };
    }

    /// The tail's acknowledgement is late: something more is sent, so that RACK learns what is lost.
    fn probe(&mut self, now: Instant, link: &mut Link, back: &mut Link) {
        self.probed = true;
        let last = self.flight.iter().rposition(|burst| burst.flying);
        if !self.unsent.is_empty() && self.outstanding < self.receive_buffer {
            self.send_new(now, MSS, link, back);
        } else if let Some(index) = last {
            self.send_again(now, self.base + index as u64, link, back);
        }
        self.timer = Some(Timer::Rto(now + self.rtt.timeout(0)));
    }

    /// Everything that is not acknowledged is lost.
    fn time_out(&mut self, now: Instant) {
        let flying = |(index, burst): (usize, &Burst)| burst.flying.then_some(index as u64);
        let base = self.base;
        let lost: Vec<u64> =
            self.flight.iter().enumerate().filter_map(flying).map(|index| base + index).collect();
        for number in &lost {
            self.lose(*number);
        }
        if self.backoff == 0 {
            self.control.lose(true, self.recovery.is_none(), self.in_flight);
            let marked = lost.len() as u64;
            self.recovery = Some(Recovery { marked, ..self.recovery_from_now(true) });
        }
        self.backoff += 1;
        self.next_notice = None;
        self.arm(now);
    }

    /// When something happens here next.
    pub(crate) fn next_event(&self) -> Option<Instant> {
        let arrival = self.flight.get(self.delivered).and_then(Burst::next_part);
        let ack = self.acks.peek().map(|Reverse((at, _))| *at);
        let pace = self.pace.filter(|_| self.may_send());
        let timer = self.timer.map(|timer| match timer {
            Timer::Probe(at) | Timer::Rto(at) => at,
        });
        [arrival, ack, self.next_notice, pace, timer].into_iter().flatten().min()
    }

    pub(crate) fn sample(&self) -> SubflowSample {
        SubflowSample {
            srtt: self.rtt.smoothed,
            // TCP_INFO has the deviation itself, and not what the timer makes of it.
            rttvar: self.rtt.deviation,
            min_rtt: self.rtt.least,
            cwnd: self.control.window as u64,
            // From f64::MAX before the first loss to u64::MAX.
            ssthresh: self.control.threshold as u64,
            mss: MSS as u32,
            in_flight: self.outstanding,
            sacked: self.sacked,
            unsent: self.unsent.len() as u64,
            acked_total: self.acked,
            delivery_rate: self.rate.rate() as u64,
            app_limited: self.rate.is_limited(),
            sent_total: self.sent,
            retransmitted_total: self.retransmitted,
            received_total: 0,
        }
    }
}

/// What one acknowledgement tells.
#[derive(Default)]
struct News {
    bytes: usize,
    /// When the first of these left that were sent once.
    oldest: Option<Instant>,
    /// Of the burst that left last: its departure, when, and when its first segment's acknowledgement
    /// was there.
    newest: Option<(crate::delivery_rate::Departure, Instant, Option<Instant>)>,
}

#[cfg(test)]
mod tests;
