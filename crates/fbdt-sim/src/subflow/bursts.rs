//! A TCP that knows of each burst whether it arrived: a congestion window, fast retransmission after
//! one RTT and a doubling timer. Its segments keep their order.

use std::collections::VecDeque;
use std::time::Duration;

use fbdt_proto::{Instant, SubflowSample};

use crate::delivery_rate::{DeliveryRate, Departure};
use crate::growth::{Cubic, HyStart, MSS, TcpGrowth};
use crate::link::{Fate, Link};

/// Unsent bytes that the socket takes (TCP_NOTSENT_LOWAT).
const UNSENT: usize = 128 << 10;
/// Bytes of a burst that arrive together at most, if nothing else happens meanwhile.
const PART: usize = 4 * MSS;
const INITIAL_WINDOW: f64 = 10.0 * MSS as f64;
const MIN_RTO: Duration = Duration::from_millis(200);

#[derive(Debug)]
struct Burst {
    bytes: Vec<u8>,
    sent: Instant,
    departure: Departure,
    /// When its first byte reaches the peer.
    begins: Instant,
    /// When its last one does; `None` while some of it is lost.
    arrives: Option<Instant>,
    /// When duplicate acknowledgements have told what of it is lost, and how many bytes that are.
    noticed: Option<(Instant, usize)>,
    /// Bytes that are known to be lost and not sent again yet.
    lost: usize,
    /// Bytes that are neither acknowledged nor known to be lost.
    in_flight: usize,
    /// Bytes that the peer has in order.
    given: usize,
    delivered: bool,
    /// Whether all of it is acknowledged, if only selectively.
    acked: bool,
    again: bool,
}

impl Burst {
    /// Whether only the timer brings it back.
    const fn is_dark(&self) -> bool {
        self.arrives.is_none() && self.noticed.is_none() && self.lost == 0
    }

    /// Bytes that reach the peer by `now`, in whole segments: what was written first does not wait
    /// for what is behind it.
    fn due(&self, now: Instant) -> usize {
        match self.arrives {
            Some(at) if at <= now => self.bytes.len(),
            Some(at) if self.begins < now => {
                let all = at.saturating_since(self.begins).as_secs_f64();
                let part = now.saturating_since(self.begins).as_secs_f64() / all;
                let bytes = (self.bytes.len() as f64 * part) as usize;
                (bytes / MSS * MSS).max(self.given)
            }
            _ => self.given,
        }
    }

    /// When the next part of it is there that is worth a step.
    fn next_part(&self) -> Option<Instant> {
        let at = self.arrives?;
        let next = self.given + PART;
        if next >= self.bytes.len() {
            return Some(at);
        }
        let all = at.saturating_since(self.begins);
        // A nanosecond later, so that rounding does not leave it short.
        let wait = all.mul_f64(next as f64 / self.bytes.len() as f64) + Duration::from_nanos(1);
        Some((self.begins + wait).min(at))
    }
}

/// Sender state of one direction.
#[derive(Debug)]
pub(crate) struct BurstTcp {
    unsent: VecDeque<u8>,
    flight: VecDeque<Burst>,
    /// Bytes that are sent and not acknowledged, also not selectively.
    in_flight: usize,
    /// Most that was in flight since about an RTT ago.
    used: usize,
    growth: TcpGrowth,
    cubic: Cubic,
    cwnd: f64,
    threshold: f64,
    srtt: Duration,
    rttvar: Duration,
    min_rtt: Duration,
    rto: Option<(Instant, u32)>,
    /// When the window was last halved: what had been sent before says nothing new.
    reduced_at: Instant,
    /// Acknowledged in order.
    acked: u64,
    /// Acknowledged selectively and not in order.
    sacked: u64,
    /// Known to be lost and not sent again yet.
    lost: usize,
    /// When the first of what else is lost will be known to be.
    next_notice: Option<Instant>,
    hystart: HyStart,
    sent: u64,
    retransmitted: u64,
    rate: DeliveryRate,
    /// Since when `used` counts.
    used_since: Instant,
    /// Bytes that a proxy has acknowledged and keeps.
    held: Vec<u8>,
    /// When the next burst may leave, if what is sent is spread over the RTT.
    pace: Option<Instant>,
}

impl BurstTcp {
    pub(crate) fn new(now: Instant, rtt: Duration, growth: TcpGrowth) -> Self {
        Self {
            growth,
            cubic: Cubic::default(),
            unsent: VecDeque::new(),
            flight: VecDeque::new(),
            in_flight: 0,
            used: 0,
            cwnd: INITIAL_WINDOW,
            threshold: f64::MAX,
            srtt: rtt,
            rttvar: rtt / 2,
            min_rtt: rtt,
            rto: None,
            reduced_at: Instant::ZERO,
            acked: 0,
            sacked: 0,
            lost: 0,
            next_notice: None,
            hystart: HyStart::default(),
            sent: 0,
            retransmitted: 0,
            rate: DeliveryRate::new(now),
            used_since: now,
            held: Vec::new(),
            pace: None,
        }
    }

    /// Whether it spreads what it sends over the RTT from now on, as a paced socket does.
    pub(crate) fn pace(&mut self, paced: bool) {
        self.pace = paced.then_some(Instant::ZERO);
    }

    /// How long a burst takes: twice the window in an RTT of slow start, 1.2 times afterwards.
    fn spread(&self, size: usize) -> Duration {
        let ratio = if self.cwnd * 2.0 < self.threshold { 2.0 } else { 1.2 };
        self.srtt.mul_f64(size as f64 / (ratio * self.cwnd))
    }

    pub(crate) fn has_room(&self) -> bool {
        self.unsent.len() < UNSENT
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) {
        if self.unsent.is_empty() && (self.in_flight as f64) < self.cwnd {
            self.rate.limit(self.acked + self.sacked, self.in_flight);
        }
        self.unsent.extend(bytes);
    }

    /// Whether everything that was written has left the socket.
    pub(crate) fn is_flushed(&self) -> bool {
        self.unsent.is_empty() && self.flight.iter().all(|burst| burst.delivered)
    }

    /// The socket is closed by reset: what is still in it is never sent.
    pub(crate) fn drop_unsent(&mut self) {
        self.unsent.clear();
        let whole = self.flight.iter().take_while(|burst| burst.arrives.is_some()).count();
        self.flight.truncate(whole);
        self.lost = 0;
        self.next_notice = None;
        self.rto = None;
    }

    /// Sends what the congestion window allows.
    pub(crate) fn pump(&mut self, now: Instant, link: &mut Link) {
        self.repair(now, link);
        while self.may_send() && self.lost == 0 && self.pace.is_none_or(|at| at <= now) {
            let size = self.send_new(now, link);
            self.pace = self.pace.map(|at| at.max(now) + self.spread(size));
        }
        self.used = self.used.max(self.in_flight);
    }

    /// Sends again what is lost, as far as the window goes: also of a session that is gone.
    fn repair(&mut self, now: Instant, link: &mut Link) {
        while self.lost > 0 && self.may_send() && self.pace.is_none_or(|at| at <= now) {
            let size = self.send_again(now, link);
            self.pace = self.pace.map(|at| at.max(now) + self.spread(size));
        }
    }

    fn may_send(&self) -> bool {
        (self.lost > 0 || !self.unsent.is_empty()) && (self.in_flight as f64) < self.cwnd
    }

    fn send_new(&mut self, now: Instant, link: &mut Link) -> usize {
        let size = self.unsent.len().min(self.growth.burst()).min(link.burst(now));
        let departure = self.depart(now);
        let mut burst = Burst {
            bytes: self.take(size),
            sent: now,
            departure,
            begins: now,
            arrives: None,
            noticed: None,
            lost: 0,
            in_flight: 0,
            given: 0,
            delivered: false,
            acked: false,
            again: false,
        };
        self.carry(now, link, &mut burst, size);
        self.flight.push_back(burst);
        size
    }

    /// The first bytes of what is unsent.
    fn take(&mut self, size: usize) -> Vec<u8> {
        let (first, second) = self.unsent.as_slices();
        let part = size.min(first.len());
        let bytes = [&first[..part], &second[..size - part]].concat();
        self.unsent.drain(..size);
        bytes
    }

    /// Sends the first of what is lost again.
    fn send_again(&mut self, now: Instant, link: &mut Link) -> usize {
        let departure = self.depart(now);
        let Some(index) = self.flight.iter().position(|b| b.lost > 0) else {
            self.lost = 0;
            return 0;
        };
        let mut flight = std::mem::take(&mut self.flight);
        let burst = &mut flight[index];
        let size = std::mem::take(&mut burst.lost);
        burst.departure = departure;
        burst.again = true;
        self.lost -= size;
        self.retransmitted += size as u64;
        self.carry(now, link, burst, size);
        self.flight = flight;
        size
    }

    fn depart(&mut self, now: Instant) -> Departure {
        self.rate.depart(now, self.acked + self.sacked, self.in_flight == 0)
    }

    /// Puts `size` bytes on the link: a burst, or what of it was lost.
    fn carry(&mut self, now: Instant, link: &mut Link, burst: &mut Burst, size: usize) {
        self.sent += size as u64;
        self.in_flight += size;
        burst.in_flight = size;
        (burst.arrives, burst.noticed) = (None, None);
        match link.carry(now, size) {
            Fate::Arrives { first, last } => {
                burst.begins = first;
                burst.arrives = Some(last);
            }
            Fate::Lost(bytes) => {
                let at = now + self.srtt;
                burst.noticed = Some((at, bytes));
                self.next_notice = Some(self.next_notice.map_or(at, |next| next.min(at)));
            }
            Fate::Dark => {
                if self.rto.is_none() {
                    self.rto = Some((now + self.base_rto(), 0));
                }
            }
        }
    }

    fn base_rto(&self) -> Duration {
        MIN_RTO.max(self.srtt + self.rttvar * 4)
    }

    /// Bytes that reach the peer by now, in order.
    pub(crate) fn deliver(&mut self, now: Instant, link: &Link, out: &mut Vec<u8>) {
        let out = if link.parameters.held {
            &mut self.held
        } else {
            out.append(&mut self.held);
            out
        };
        for burst in self.flight.iter_mut().filter(|b| !b.delivered) {
            let due = burst.due(now);
            out.extend_from_slice(&burst.bytes[burst.given..due]);
            burst.given = due;
            if due < burst.bytes.len() {
                break;
            }
            burst.delivered = true;
        }
    }

    /// Acknowledgements, what they tell to be lost, and the retransmission timer.
    pub(crate) fn advance(&mut self, now: Instant, link: &mut Link, back: &Link) {
        if back.parameters.blackout {
            self.lose_acknowledgements(now, back);
        } else {
            self.acknowledge(now, back);
        }
        self.notice_losses(now);
        if now.saturating_since(self.used_since) >= self.srtt.max(Duration::from_millis(5)) {
            self.used_since = now;
            self.used = self.in_flight;
        }
        if let Some((at, count)) = self.rto
            && at <= now
        {
            self.timeout(now, count);
        }
        self.repair(now, link);
    }

    fn acknowledge(&mut self, now: Instant, back: &Link) {
        let mut flight = std::mem::take(&mut self.flight);
        let mut last = None;
        for burst in flight.iter_mut().filter(|b| !b.acked) {
            let Some(at) = burst.arrives.map(|at| back.parameters.crossed(at)) else { continue };
            if at > now {
                if burst.again {
                    continue;
                }
                // What was sent later arrives later.
                break;
            }
            burst.acked = true;
            last = Some(burst.departure);
            self.in_flight -= burst.in_flight;
            self.sacked += burst.bytes.len() as u64;
            if !burst.again {
                self.measure(at.saturating_since(burst.sent));
                let first = back.parameters.crossed(burst.begins).saturating_since(burst.sent);
                if self.cwnd < self.threshold
                    && self.hystart.queue_began(
                        now,
                        burst.sent,
                        burst.bytes.len() / MSS,
                        first,
                        self.min_rtt,
                    )
                    && self.cwnd >= 16.0 * MSS as f64
                {
                    self.threshold = self.cwnd;
                }
            }
            self.grow(now, burst.bytes.len() as f64, burst.sent);
        }
        if let Some(last) = last {
            // It restarts the timer for what is still lost.
            let dark = flight.iter().any(Burst::is_dark);
            self.rto = dark.then(|| (now + self.base_rto(), 0));
            self.rate.acknowledge(now, self.acked + self.sacked, last, self.min_rtt);
        }
        while let Some(burst) = flight.pop_front_if(|b| b.acked && b.delivered) {
            self.acked += burst.bytes.len() as u64;
            self.sacked -= burst.bytes.len() as u64;
        }
        self.flight = flight;
    }

    /// `size` bytes are acknowledged, which were sent then.
    fn grow(&mut self, now: Instant, size: f64, sent: Instant) {
        // A window that is not used does not grow (RFC 7661), nor one that is recovering.
        let used = self.used as f64;
        if sent < self.reduced_at {
            return;
        }
        self.cwnd += if self.cwnd < self.threshold {
            if self.cwnd < 2.0 * used { size } else { 0.0 }
        } else if self.cwnd > used + self.growth.burst() as f64 {
            0.0
        } else {
            self.avoid(now, size)
        };
    }

    /// One RTT after it was sent, what is lost is known to be, and the window halves once per round.
    fn notice_losses(&mut self, now: Instant) {
        if self.next_notice.is_none_or(|at| at > now) {
            return;
        }
        let mut halve = false;
        for burst in &mut self.flight {
            let Some((_, bytes)) = burst.noticed.filter(|(at, _)| *at <= now) else { continue };
            burst.noticed = None;
            burst.lost = bytes;
            self.lost += bytes;
            // What else of it was sent is acknowledged selectively.
            self.in_flight -= std::mem::take(&mut burst.in_flight);
            halve |= !burst.again && burst.sent >= self.reduced_at;
        }
        self.next_notice = self.flight.iter().filter_map(|b| b.noticed.map(|(at, _)| at)).min();
        if halve {
            let kept = self.growth.kept();
            self.cubic.lose(self.cwnd / MSS as f64, kept);
            self.threshold = (self.cwnd * kept).max(2.0 * MSS as f64);
            self.cwnd = self.threshold;
            self.reduced_at = now;
        }
    }

    /// What the window grows by in congestion avoidance.
    fn avoid(&mut self, now: Instant, acked: f64) -> f64 {
        let mss = MSS as f64;
        match self.growth {
            TcpGrowth::Brisk => acked * 8.0 * mss / self.cwnd,
            TcpGrowth::Reno => acked * mss / self.cwnd,
            TcpGrowth::Cubic => {
                let window = self.cubic.grow(now, self.cwnd / mss, acked / mss, self.srtt);
                window * mss - self.cwnd
            }
            // They have a model of their own.
            TcpGrowth::Linux | TcpGrowth::Bbr => 0.0,
        }
    }

    /// Acknowledgements that are due in a blackout are gone: only the timer
    /// brings the next ones.
    fn lose_acknowledgements(&mut self, now: Instant, back: &Link) {
        let mut lost = false;
        for burst in self.flight.iter_mut().filter(|b| !b.acked) {
            if burst.arrives.is_some_and(|at| back.parameters.crossed(at) <= now) {
                burst.arrives = None;
                burst.again = true;
                lost = true;
            }
        }
        if lost && self.rto.is_none() {
            self.rto = Some((now + self.base_rto(), 0));
        }
    }

    fn measure(&mut self, rtt: Duration) {
        self.min_rtt = self.min_rtt.min(rtt);
        let gap = rtt.abs_diff(self.srtt);
        self.rttvar = (self.rttvar * 3 + gap) / 4;
        self.srtt = (self.srtt * 7 + rtt) / 8;
    }

    /// The timer fires: what has not arrived is lost.
    fn timeout(&mut self, now: Instant, count: u32) {
        self.rto = None;
        self.threshold = (self.cwnd / 2.0).max(2.0 * MSS as f64);
        self.cubic.lose(self.cwnd / MSS as f64, 0.5);
        self.cwnd = INITIAL_WINDOW;
        for burst in self.flight.iter_mut().filter(|b| b.is_dark()) {
            burst.lost = burst.bytes.len();
            self.lost += burst.lost;
            self.in_flight -= std::mem::take(&mut burst.in_flight);
        }
        if self.lost > 0 {
            self.rto = Some((now + self.base_rto() * 2u32.pow((count + 1).min(8)), count + 1));
        }
    }

    /// When something happens here next.
    pub(crate) fn next_event(&self, back: &Link) -> Option<Instant> {
        let arrival = self.flight.iter().find(|b| !b.delivered).and_then(Burst::next_part);
        let ack = if back.parameters.blackout { None } else { self.next_ack(back) };
        let pace = self.pace.filter(|_| self.may_send());
        let rto = self.rto.map(|(at, _)| at);
        [arrival, ack, self.next_notice, pace, rto].into_iter().flatten().min()
    }

    /// When the next acknowledgement is there: of the first burst that is on its way for the first
    /// time, or of one before it.
    fn next_ack(&self, back: &Link) -> Option<Instant> {
        let mut next: Option<Instant> = None;
        for burst in self.flight.iter().filter(|b| !b.acked) {
            let Some(at) = burst.arrives.map(|at| back.parameters.crossed(at)) else { continue };
            next = Some(next.map_or(at, |next| next.min(at)));
            if !burst.again {
                break;
            }
        }
        next
    }

    pub(crate) fn sample(&self) -> SubflowSample {
        SubflowSample {
            srtt: self.srtt,
            rttvar: self.rttvar,
            min_rtt: self.min_rtt,
            cwnd: self.cwnd as u64,
            // From f64::MAX before the first loss to u64::MAX.
            ssthresh: self.threshold as u64,
            mss: MSS as u32,
            in_flight: self.flight.iter().map(|burst| burst.bytes.len() as u64).sum(),
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

#[cfg(test)]
#[path = "bursts_tests.rs"]
mod tests;
