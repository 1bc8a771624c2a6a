//! When a client dials a path and probes it: one rule for every cause, and a budget for each path (F18).
//!
//! An attempt is a TCP connection, of which a firewall counts each SYN. A probe is an echoed datagram
//! (F19), which costs nothing: where probes pass, they find out when a silent path is back, and an attempt
//! follows. Where they do not, a few attempts look for it.

use core::time::Duration;

use fbdt_units::Instant;

/// So many in a row are no chance: SYNs that a path may send at once, attempts that vanish beside answered
/// probes because the server limits new connections, and probes in vain on a new subflow, one each second.
const FEW: u32 = 3;
/// One more may follow after this time. Firewalls that allow five new connections in 30 s (`ufw limit`) then
/// let it in for ever.
const REFILL: Duration = Duration::from_secs(7);
/// A subflow that lived so long shows that the path works: its budget is full again.
const LIVED: Duration = Duration::from_secs(1);
/// TCP repeats a SYN after this time, and then each second.
const SYN_REPEAT: Duration = Duration::from_secs(1);
/// An attempt ends this long before TCP would repeat its SYN.
const SYN_MARGIN: Duration = Duration::from_millis(50);
/// SYNs of one attempt on a slow path at most.
const MOST_REPEATS: u32 = 16;
/// An attempt begins beside the first probe where its answer takes this long.
const LONG_RTT: Duration = Duration::from_millis(20);
/// Least times between the first attempts of a series.
const GAPS: [Duration; 3] =
    [Duration::from_millis(300), Duration::from_millis(700), Duration::from_millis(2200)];
/// Between attempts at several addresses of a server that was not reached yet.
const STAGGER: Duration = Duration::from_millis(250);
/// Attempts after these wait for the outage so far, divided by this.
const LATER: u32 = 4;
/// No attempt and no probe waits longer.
const LONGEST_GAP: Duration = Duration::from_secs(60);
/// Probes follow each other after a quarter of the RTT, but within these bounds.
const PROBE_GAP: (Duration, Duration) = (Duration::from_millis(10), Duration::from_millis(250));
/// Probes wait for the outage so far, divided by this, once that is longer.
const PROBE_SHARE: u32 = 128;
/// A path whose server limits new connections waits so long, and twice as long each time.
const LIMITED_GAP: Duration = Duration::from_secs(10);

/// Whether the server has answered probes on a path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Echo {
    /// No probe was answered yet; a new subflow sends a few.
    #[default]
    Unknown,
    /// The server answered one.
    Answered,
    /// The server answered none of those of a subflow: a firewall drops them, or the server is older.
    Silent,
}

/// The attempts of one session to get a connection on a path.
#[derive(Clone, Copy, Debug)]
pub struct Series {
    since: Instant,
    attempts: u32,
    /// Budget that the last attempt took: a refill for each SYN that TCP may send in its time.
    cost: Duration,
    /// When the last attempt began, and when the next one may because of an answered probe.
    last: Option<Instant>,
    again: Instant,
    /// When the next attempt is due although no probe was answered.
    blind: Instant,
    /// When a probe was answered first after the last attempt began.
    answered: Option<Instant>,
    /// When an answered probe caused the last attempt, or when the series began.
    eager: Instant,
    /// Probes may find out more than TCP has said: nothing, where a connection is silent, and not that it
    /// ended or was refused.
    silent: bool,
}

/// A path's budget of SYNs, its RTT, and the answers to its attempts and probes.
#[derive(Clone, Debug, Default)]
pub struct Dialling {
    rtt: Option<Duration>,
    /// When the budget is full again.
    full: Instant,
    series: Option<Series>,
    /// When its last subflow came up.
    up: Option<Instant>,
    echo: Echo,
    probed: Option<Instant>,
    trials: u32,
    vanished: u32,
    /// The server's machine answers, and its program does not run: it refused the last attempt.
    refused: bool,
    /// When it refused a probe last.
    absent: Option<Instant>,
    /// Its server was seen to limit new connections.
    limited: bool,
}

impl Series {
    fn new(now: Instant, wait: Duration, silent: bool) -> Self {
        Self {
            since: now,
            attempts: 0,
            cost: Duration::ZERO,
            last: None,
            again: now,
            blind: now + wait,
            answered: None,
            eager: now,
            silent,
        }
    }
}

impl Dialling {
    /// A connection is wanted; `beside` the one that the path has, or in the place of one that is gone.
    pub fn begin(&mut self, now: Instant, beside: bool) {
        if self.series.is_some() {
            return;
        }
        let lived = self.up.take().map(|up| now.saturating_since(up));
        match lived {
            _ if self.limited => {}
            Some(time) if time >= LIVED => self.full = now,
            Some(_) if beside => self.full = self.full - REFILL,
            _ => {}
        }
        // A probe finds a silent path as fast, unless its answer takes longer than silences that are common.
        let is_found = self.echo == Echo::Answered && self.rtt.is_some_and(|rtt| rtt < LONG_RTT);
        let wait = if beside && is_found { SYN_REPEAT } else { Duration::ZERO };
        self.series = Some(Series::new(now, wait, beside && !self.refused));
    }

    /// No connection is wanted any more: the old one lives.
    pub fn cancel(&mut self) {
        self.series = None;
    }

    /// The path has a new subflow.
    pub fn up(&mut self, now: Instant) {
        (self.series, self.up, self.vanished) = (None, Some(now), 0);
        if self.echo != Echo::Answered {
            (self.echo, self.trials, self.probed) = (Echo::Unknown, 0, None);
        }
    }

    /// The server has forgotten the session, and said so: a new one is opened at no cost.
    pub fn forgotten(&mut self) {
        self.series = None;
        self.full = self.full - REFILL;
    }

    /// The path's own interface, address or route changed: what was learnt about it is worth nothing.
    pub fn moved(&mut self, now: Instant) {
        *self = Self { full: now, up: self.up, series: self.series, ..Self::default() };
        self.restart(now);
    }

    /// If a connection is wanted, an attempt is due now.
    pub fn restart(&mut self, now: Instant) {
        self.series = self.series.map(|old| Series::new(now, Duration::ZERO, old.silent));
    }

    /// Goes on with the attempts of another session over the same path; gives those of the last one.
    pub const fn exchange(&mut self, series: Option<Series>) -> Option<Series> {
        core::mem::replace(&mut self.series, series)
    }

    /// The path's RTT was measured.
    pub const fn measured(&mut self, rtt: Duration) {
        self.rtt = Some(rtt);
    }

    /// When the next attempt is due; none while no connection is wanted.
    #[must_use]
    pub fn next_attempt(&self) -> Option<Instant> {
        let series = self.series.as_ref()?;
        let budget = |reserve: u32| self.full - REFILL * (FEW - 1 - reserve);
        // One is kept for the time when a probe is answered.
        let reserve = u32::from(self.echo == Echo::Answered && series.silent);
        let blind = series.blind.max(budget(reserve));
        let found = series.answered.map(|at| at.max(series.again).max(budget(0)));
        let paused = match series.last {
            Some(last) if self.is_limited() => last + self.limited_gap(),
            _ => Instant::ZERO,
        };
        Some(found.map_or(blind, |at| at.min(blind)).max(paused))
    }

    /// An attempt begins, at one of `addresses` of the server that are as good as each other. Returns how
    /// long to wait for TCP's answer. `spread` is random: clients of a server that comes back do not come
    /// all at once.
    pub fn attempt(&mut self, now: Instant, addresses: usize, spread: u8) -> Duration {
        let addresses = u32::try_from(addresses).unwrap_or(u32::MAX).max(1);
        let Some(series) = &mut self.series else { return SYN_REPEAT };
        let round = series.attempts / addresses;
        series.attempts += 1;
        let slow = self.rtt.map(|rtt| rtt * 3 / 2);
        let repeats = slow.map_or_else(
            || unknown_patience(round),
            |slow| {
                u32::try_from(slow.as_secs())
                    .map_or(MOST_REPEATS, |seconds| seconds.saturating_add(1))
            },
        );
        let repeats = repeats.min(MOST_REPEATS);
        // Only once each address may be a machine of its own, with a firewall that counts for itself.
        series.cost = REFILL * repeats / if round == 0 { addresses } else { 1 };
        self.full = self.full.max(now) + series.cost;
        let slow = slow.unwrap_or_default();
        let gap = match GAPS.get(round as usize) {
            _ if !series.attempts.is_multiple_of(addresses) => STAGGER,
            // Probes look meanwhile.
            Some(_) if self.echo == Echo::Answered && series.silent => slow.max(SYN_REPEAT),
            Some(gap) => slow.max(*gap),
            None => {
                let outage = now.saturating_since(series.since);
                // One that is refused costs one SYN, however long it would be waited for.
                let least = if self.refused { REFILL } else { REFILL * repeats };
                let gap = (outage / LATER).clamp(least, LONGEST_GAP.max(least));
                gap * (384 + u32::from(spread)) / 512
            }
        };
        series.blind = now + gap;
        let found = series.answered.take().is_some();
        // Where the path was still silent, a probe that follows is answered and the SYN is not.
        series.again = now + slow.max(if found { GAPS[0] } else { PROBE_GAP.0 });
        series.last = Some(now);
        if found {
            series.eager = now;
        }
        SYN_REPEAT * repeats - SYN_MARGIN
    }

    /// TCP's answer came, within `rtt`: what follows takes a few more RTTs.
    pub fn connected(&mut self, now: Instant, rtt: Duration) {
        self.measured(rtt);
        (self.vanished, self.refused, self.absent) = (0, false, None);
        self.refund(REFILL);
        if let Some(series) = &mut self.series {
            let rest = (rtt * 3).max(GAPS[0]);
            series.again = now + rest;
            series.blind = series.blind.max(now + rest);
        }
    }

    /// There is another address of the server to try.
    pub fn another_address(&mut self, now: Instant) {
        if let Some(series) = &mut self.series {
            series.blind = series.blind.min(now);
        }
    }

    /// An attempt was refused by TCP: the server's program does not run at present. It costs half of one
    /// that vanishes, and the next one follows soon.
    pub fn refused(&mut self) {
        self.refused = true;
        self.refund(REFILL / 2);
        let Some(series) = &mut self.series else { return };
        if core::mem::replace(&mut series.silent, false)
            && let Some(last) = series.last
        {
            series.blind = series.blind.min(last + GAPS[0]);
        }
    }

    /// The server's machine refused the last attempt. It refuses probes of any key until the server runs.
    #[must_use]
    pub const fn is_refused(&self) -> bool {
        self.refused
    }

    /// The last attempt sent nothing.
    pub fn not_sent(&mut self) {
        self.refund(Duration::ZERO);
    }

    /// The last attempt has cost so much.
    fn refund(&mut self, spent: Duration) {
        if let Some(series) = &mut self.series {
            let rest = series.cost.saturating_sub(spent);
            series.cost -= rest;
            self.full = self.full - rest;
        }
    }

    /// An attempt got no answer from TCP.
    pub fn vanished(&mut self) {
        if self.series.is_some_and(|series| series.answered.is_some()) {
            self.vanished = self.vanished.saturating_add(1);
            self.limited |= self.is_limited();
        }
    }

    /// The server answers probes and not SYNs: its firewall seems to limit new connections.
    #[must_use]
    pub const fn is_limited(&self) -> bool {
        self.vanished >= FEW
    }

    fn limited_gap(&self) -> Duration {
        let doublings = self.vanished.saturating_sub(FEW).min(8);
        (LIMITED_GAP * (1 << doublings)).min(LONGEST_GAP)
    }

    /// When the next probe is due, if it can be sent and means something.
    #[must_use]
    pub fn next_probe(&self) -> Option<Instant> {
        let gap = match &self.series {
            // There is nothing new to learn before the next attempt.
            Some(series) if series.answered.is_some() => SYN_REPEAT,
            Some(_) if self.echo == Echo::Silent && !self.refused => return None,
            Some(series) => {
                let (least, most) = PROBE_GAP;
                let least = self.rtt.map_or(most, |rtt| (rtt / 4).clamp(least, most));
                // Linux says at most once a second that nobody takes them.
                let least = if self.refused { SYN_REPEAT * 5 / 4 } else { least };
                let outage = self.probed.map(|at| at.saturating_since(series.eager));
                (outage.unwrap_or_default() / PROBE_SHARE).clamp(least, LONGEST_GAP)
            }
            None if self.echo == Echo::Unknown => SYN_REPEAT,
            None => return None,
        };
        let since = self.series.map(|series| series.since).or(self.up)?;
        Some(self.probed.map_or(since, |at| (at + gap).max(since)))
    }

    /// A probe was sent.
    pub fn probe(&mut self, now: Instant) {
        // The one before was not refused: the server's program may run again, and not know this session.
        if let Some(series) = &mut self.series
            && self.absent.is_some_and(|at| self.probed.is_some_and(|sent| sent > at))
        {
            self.absent = None;
            series.answered.get_or_insert(now);
        }
        self.probed = Some(now);
        if self.series.is_none() && self.echo == Echo::Unknown {
            // The answer to the last one is waited for as long as to the others.
            if self.trials >= FEW {
                self.echo = Echo::Silent;
            }
            self.trials += 1;
        }
    }

    /// A probe was answered after `rtt`.
    pub fn answered(&mut self, now: Instant, rtt: Duration) {
        self.echo = Echo::Answered;
        self.measured(rtt);
        if let Some(series) = &mut self.series {
            series.answered.get_or_insert(now);
        }
    }

    /// Nobody takes datagrams there, or they cannot be sent.
    pub fn unanswerable(&mut self, now: Instant) {
        if self.refused {
            self.absent = Some(now);
        } else if self.series.is_none() && self.echo == Echo::Unknown {
            self.echo = Echo::Silent;
        }
    }
}

/// Seconds that the attempts of a round wait where the path may be slow: each other one waits longer.
const fn unknown_patience(round: u32) -> u32 {
    if round.is_multiple_of(2) { 1 } else { 1 + round.div_ceil(2) }
}

#[cfg(test)]
mod tests;
