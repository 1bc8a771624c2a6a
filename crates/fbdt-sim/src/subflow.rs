//! One direction of an emulated TCP connection: reliable, in order, with a
//! congestion window, fast retransmission and a doubling timer.

use std::collections::VecDeque;
use std::time::Duration;

use fbdt_proto::{Instant, SubflowSample};

use crate::link::{Fate, Link};

const MSS: usize = 1448;
/// Unsent bytes that the socket takes (TCP_NOTSENT_LOWAT).
const UNSENT: usize = 128 << 10;
/// Bytes of a burst that arrive together at most, if nothing else happens meanwhile.
const PART: usize = 4 * MSS;
const INITIAL_WINDOW: f64 = 10.0 * MSS as f64;
const MIN_RTO: Duration = Duration::from_millis(200);

/// How a TCP's congestion window grows, and what a loss leaves of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TcpGrowth {
    /// 8 segments in an RTT, 0.7: fills any link soon.
    #[default]
    Brisk,
    /// A segment in an RTT, 0.5 (RFC 5681).
    Reno,
    /// RFC 9438, 0.7.
    Cubic,
}

impl TcpGrowth {
    /// Bytes that are put on the link together. All TCPs over one bottleneck
    /// must burst alike: what is dropped there is a burst.
    const fn burst(self) -> usize {
        match self {
            Self::Brisk => 8 * MSS,
            Self::Reno | Self::Cubic => 3 * MSS,
        }
    }

    const fn kept(self) -> f64 {
        match self {
            Self::Reno => 0.5,
            Self::Brisk | Self::Cubic => 0.7,
        }
    }
}

/// CUBIC's memory of the last loss; sizes in segments.
#[derive(Clone, Copy, Debug, Default)]
struct Cubic {
    maximum: f64,
    plateau: f64,
    epoch: Option<Instant>,
    friendly: f64,
}

impl Cubic {
    /// The window before a loss; `kept` of it is left.
    fn lose(&mut self, window: f64, kept: f64) {
        let converged = window * (1.0 + kept) / 2.0;
        self.maximum = if window < self.maximum { converged } else { window };
        self.plateau = ((self.maximum - window * kept).max(0.0) / 0.4).cbrt();
        self.friendly = window * kept;
        self.epoch = None;
    }

    /// The window after `acked` segments more.
    fn grow(&mut self, now: Instant, window: f64, acked: f64, rtt: Duration) -> f64 {
        let epoch = *self.epoch.get_or_insert(now);
        if self.maximum == 0.0 {
            (self.maximum, self.friendly) = (window, window);
        }
        let curve = |t: f64| 0.4 * (t - self.plateau).powi(3) + self.maximum;
        let age = now.saturating_since(epoch).as_secs_f64();
        // RFC 9438's alpha, which Linux leaves at this also where W_est has reached the old window.
        self.friendly += 0.529 * acked / window;
        if curve(age) < self.friendly {
            return window.max(self.friendly);
        }
        let target = curve(age + rtt.as_secs_f64()).clamp(window, 1.5 * window);
        window + (target - window) * acked / window
    }
}

#[derive(Debug)]
struct Burst {
    bytes: Vec<u8>,
    sent: Instant,
    /// When its first byte reaches the peer.
    begins: Instant,
    /// When its last one does; `None` while lost.
    arrives: Option<Instant>,
    /// Bytes that the peer has.
    given: usize,
    delivered: bool,
    again: bool,
}

impl Burst {
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
pub(crate) struct TcpDirection {
    unsent: VecDeque<u8>,
    flight: VecDeque<Burst>,
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
    recover_until: Instant,
    acked: u64,
    sent: u64,
    retransmitted: u64,
    rate_mark: (Instant, u64),
    rate: f64,
    last_arrival: Instant,
    /// Bytes that a proxy has acknowledged and keeps.
    held: Vec<u8>,
    /// When the next burst may leave, if what is sent is spread over the RTT.
    pace: Option<Instant>,
}

impl TcpDirection {
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
            recover_until: Instant::ZERO,
            acked: 0,
            sent: 0,
            retransmitted: 0,
            rate_mark: (now, 0),
            rate: 0.0,
            last_arrival: Instant::ZERO,
            held: Vec::new(),
            pace: None,
        }
    }

    /// From now on it spreads what it sends over the RTT, as a paced socket does.
    pub(crate) fn paced(mut self, paced: bool) -> Self {
        self.pace = paced.then_some(Instant::ZERO);
        self
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
        self.rto = None;
    }

    /// Sends what the congestion window allows.
    pub(crate) fn pump(&mut self, now: Instant, link: &mut Link) {
        while self.may_send() && self.pace.is_none_or(|at| at <= now) {
            let size = self.unsent.len().min(self.growth.burst());
            let bytes: Vec<u8> = self.unsent.drain(..size).collect();
            self.in_flight += size;
            let mut burst = Burst {
                bytes,
                sent: now,
                begins: now,
                arrives: None,
                given: 0,
                delivered: false,
                again: false,
            };
            self.carry(now, link, &mut burst);
            self.flight.push_back(burst);
            self.pace = self.pace.map(|at| at.max(now) + self.spread(size));
        }
        self.used = self.used.max(self.in_flight);
    }

    fn may_send(&self) -> bool {
        !self.unsent.is_empty() && (self.in_flight as f64) < self.cwnd
    }

    fn carry(&mut self, now: Instant, link: &mut Link, burst: &mut Burst) {
        self.sent += burst.bytes.len() as u64;
        match link.carry(now, burst.bytes.len()) {
            Fate::Arrives(at) => {
                let at = at.max(self.last_arrival);
                burst.begins = (at - link.time_of(now, burst.bytes.len())).max(self.last_arrival);
                self.last_arrival = at;
                burst.arrives = Some(at);
            }
            Fate::Lost => {
                // Fast retransmission: one RTT later, and the window halves
                // once per round.
                let at = (now + self.srtt + link.parameters.delay).max(self.last_arrival);
                self.last_arrival = at;
                burst.begins = at;
                burst.arrives = Some(at);
                self.sent += MSS as u64;
                self.retransmitted += MSS as u64;
                if now >= self.recover_until {
                    let kept = self.growth.kept();
                    self.cubic.lose(self.cwnd / MSS as f64, kept);
                    self.threshold = (self.cwnd * kept).max(2.0 * MSS as f64);
                    self.cwnd = self.threshold;
                    self.recover_until = now + self.srtt;
                }
            }
            Fate::Dark => {
                burst.arrives = None;
                if self.rto.is_none() {
                    let rto = MIN_RTO.max(self.srtt + self.rttvar * 4);
                    self.rto = Some((now + rto, 0));
                }
            }
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

    /// Acknowledgements and the retransmission timer.
    pub(crate) fn advance(&mut self, now: Instant, link: &mut Link, back: &Link) {
        if back.parameters.blackout {
            self.lose_acknowledgements(now, back);
        }
        while let Some(front) = self.flight.front()
            && front.delivered
            && front.arrives.is_some_and(|at| back.parameters.crossed(at) <= now)
            && !back.parameters.blackout
        {
            let Some(burst) = self.flight.pop_front() else { break };
            let size = burst.bytes.len();
            // A window that is not used does not grow (RFC 7661).
            let used = self.used as f64;
            self.in_flight -= size;
            self.acked += size as u64;
            if !burst.again {
                self.measure(now.saturating_since(burst.sent));
            }
            // An acknowledgement restarts the timer for what is still lost.
            let lost = self.flight.iter().any(|b| b.arrives.is_none());
            self.rto = lost.then(|| (now + MIN_RTO.max(self.srtt + self.rttvar * 4), 0));
            self.cwnd += if self.cwnd < self.threshold {
                if self.cwnd < 2.0 * used { size as f64 } else { 0.0 }
            } else if self.cwnd > used + self.growth.burst() as f64 {
                0.0
            } else {
                self.avoid(now, size as f64)
            };
        }
        let span = now.saturating_since(self.rate_mark.0);
        if span >= self.srtt.max(Duration::from_millis(5)) {
            self.rate = (self.acked - self.rate_mark.1) as f64 / span.as_secs_f64();
            self.rate_mark = (now, self.acked);
            self.used = self.in_flight;
        }
        if let Some((at, count)) = self.rto
            && at <= now
        {
            self.timeout(now, count, link);
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
        }
    }

    /// Acknowledgements that are due in a blackout are gone: only the timer
    /// brings the next ones.
    fn lose_acknowledgements(&mut self, now: Instant, back: &Link) {
        let mut lost = false;
        for burst in self.flight.iter_mut().filter(|b| b.delivered) {
            if burst.arrives.is_some_and(|at| back.parameters.crossed(at) <= now) {
                burst.arrives = None;
                burst.again = true;
                lost = true;
            }
        }
        if lost && self.rto.is_none() {
            self.rto = Some((now + MIN_RTO.max(self.srtt + self.rttvar * 4), 0));
        }
    }

    fn measure(&mut self, rtt: Duration) {
        self.min_rtt = self.min_rtt.min(rtt);
        let gap = rtt.abs_diff(self.srtt);
        self.rttvar = (self.rttvar * 3 + gap) / 4;
        self.srtt = (self.srtt * 7 + rtt) / 8;
    }

    /// The timer fires: the lost bursts go out again, oldest first.
    fn timeout(&mut self, now: Instant, count: u32, link: &mut Link) {
        self.rto = None;
        self.threshold = (self.cwnd / 2.0).max(2.0 * MSS as f64);
        self.cubic.lose(self.cwnd / MSS as f64, 0.5);
        self.cwnd = INITIAL_WINDOW;
        let mut flight = std::mem::take(&mut self.flight);
        for burst in flight.iter_mut().filter(|b| b.arrives.is_none()) {
            burst.again = true;
            self.retransmitted += burst.bytes.len() as u64;
            self.carry(now, link, burst);
            if burst.arrives.is_none() {
                break;
            }
        }
        self.flight = flight;
        if self.rto.is_some() || self.flight.iter().any(|b| b.arrives.is_none()) {
            let base = MIN_RTO.max(self.srtt + self.rttvar * 4);
            self.rto = Some((now + base * 2u32.pow((count + 1).min(8)), count + 1));
        }
    }

    /// When something happens here next.
    pub(crate) fn next_event(&self, back: &Link) -> Option<Instant> {
        let arrival = self.flight.iter().find(|b| !b.delivered).and_then(Burst::next_part);
        let ack = self
            .flight
            .front()
            .filter(|b| b.delivered && !back.parameters.blackout)
            .and_then(|b| b.arrives.map(|at| back.parameters.crossed(at)));
        let pace = self.pace.filter(|_| self.may_send());
        [arrival, ack, pace, self.rto.map(|(at, _)| at)].into_iter().flatten().min()
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
            in_flight: self.in_flight as u64,
            sacked: 0,
            unsent: self.unsent.len() as u64,
            acked_total: self.acked,
            delivery_rate: self.rate as u64,
            app_limited: self.unsent.is_empty(),
            sent_total: self.sent,
            retransmitted_total: self.retransmitted,
            received_total: 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link::LinkParameters;
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;

    /// Found by random operations, shrunk to an idle stream whose path went
    /// dark in one direction: acknowledgements that fell due in the blackout
    /// were there when it ended, as RTT samples as long as the blackout. The
    /// old subflow so showed life, was not replaced, and then looked too late
    /// for anything.
    #[test]
    fn acknowledgements_that_are_due_in_a_blackout_are_lost() {
        let link =
            |seed| Link::new(LinkParameters::new(10.0, 20.0), ChaCha8Rng::seed_from_u64(seed));
        let (mut there, mut back) = (link(1), link(2));
        let at = |ms| Instant::ZERO + Duration::from_millis(ms);
        let mut tcp = TcpDirection::new(at(0), Duration::from_millis(20), TcpGrowth::Brisk);
        let mut got = Vec::new();
        tcp.write(&[7; 1000]);
        tcp.pump(at(0), &mut there);
        for ms in 1..6000 {
            back.parameters.blackout = (12..1000).contains(&ms);
            tcp.deliver(at(ms), &there, &mut got);
            tcp.advance(at(ms), &mut there, &back);
        }
        assert_eq!(got, [7; 1000], "sent again, it arrives once");
        assert!(tcp.flight.is_empty(), "it is acknowledged in the end");
        assert!(tcp.srtt < Duration::from_millis(30), "{:?}", tcp.srtt);
    }

    #[test]
    fn what_was_written_first_does_not_wait_for_what_is_sent_with_it() {
        let random = ChaCha8Rng::seed_from_u64(1);
        let mut link = Link::new(LinkParameters::new(30.0, 4.0), random);
        let at = |us| Instant::ZERO + Duration::from_micros(us);
        let mut tcp = TcpDirection::new(at(0), Duration::from_millis(4), TcpGrowth::Brisk);
        tcp.write(&[7; 8 * MSS]);
        tcp.pump(at(0), &mut link);
        let mut got = Vec::new();
        // 3.75 bytes take a microsecond, and 2 ms the way.
        for (us, segments) in [(2000, 0), (2390, 1), (3000, 2), (5000, 7), (5100, 8)] {
            tcp.deliver(at(us), &link, &mut got);
            assert_eq!(got.len(), segments * MSS, "after {us} us");
        }
        let mut events = 0;
        let mut tcp = TcpDirection::new(at(0), Duration::from_millis(4), TcpGrowth::Brisk);
        tcp.write(&[7; 8 * MSS]);
        tcp.pump(at(0), &mut link);
        got.clear();
        while got.len() < 8 * MSS {
            let now = tcp.next_event(&link).expect("the rest arrives");
            tcp.deliver(now, &link, &mut got);
            events += 1;
            assert_eq!(got.len(), (events * PART).min(8 * MSS));
        }
        assert_eq!(events, 2);
    }
}
