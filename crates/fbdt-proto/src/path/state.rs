//! One path with its subflow.

use alloc::collections::{BTreeSet, VecDeque};
use alloc::string::String;
use core::time::Duration;

use fbdt_units::{Instant, PathId, StreamId, SubflowId, SubflowSample, bytes_in, time_for};
use fbdt_wire::PathPolicy;

use super::model::PathModel;
use super::redials::Redials;
use super::room::Room;
use super::{Answers, Chunk, Health, OneWay, PathView, Progress, RateLimit, Reliability, Share};
use crate::config::Config;
use crate::scale::{LEAST_FRAME, NOISE, TICK};

/// Why bytes were sent a second time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum CopyReason {
    /// Their subflow is gone.
    Lost,
    /// Their path is suspect (F9).
    Suspect,
    /// They are overdue and hold up delivery (F6).
    Overdue,
    /// This path had nothing else to do and wins (F4, F6, F10).
    Idle,
    /// The scheduler sends it twice by its own rule.
    Scheduled,
}

impl CopyReason {
    /// Every reason, in the order in which they are counted.
    pub(crate) const ALL: [Self; 5] =
        [Self::Lost, Self::Suspect, Self::Overdue, Self::Idle, Self::Scheduled];
}

/// Fewer bytes than these are acknowledged with patience ...
const ACK_BYTES: u64 = 16 << 10;
/// ... of this many intervals between acknowledgements.
const ACK_PATIENCE: u32 = 3;
/// A radio may sleep after this much silence.
const COLD: Duration = Duration::from_millis(40);

/// The TCP connection that a path has now.
#[derive(Debug)]
pub(crate) struct Subflow {
    /// Its number.
    pub id: SubflowId,
    /// When it came up.
    pub since: Instant,
    /// What TCP said last.
    pub sample: SubflowSample,
    /// Bytes handed over since then.
    pub since_sample: u64,
    /// Whether what it holds is acknowledged.
    pub progress: Progress,
    /// Whether the peer answers what it asks.
    pub answers: Answers,
    /// When the last acknowledgement frame left.
    pub last_ack: Instant,
    /// When the last frame arrived.
    pub last_input: Instant,
    /// When the last probe left.
    pub last_ping: Instant,
    /// Whether the next acknowledgements leave without a pause.
    pub ack_hurries: bool,
    /// Stream bytes that arrived since then.
    pub unacked: u64,
    /// Streams whose acknowledgement is owed on this subflow.
    pub ack_streams: BTreeSet<StreamId>,
    /// The stream from which on the next acknowledgement is looked for.
    pub ack_from: StreamId,
    /// The session's count of news at which there was nothing to send on it.
    pub idle_at: Option<u64>,
    /// Whether the session's limit is owed on this subflow.
    pub session_limit_due: bool,
    /// A probe to answer.
    pub pong_due: Option<(u64, Instant)>,
    /// Whether a probe should leave.
    pub ping_due: bool,
    /// Whether the close frame has left.
    pub close_sent: bool,
    /// The peer's Close arrived on it.
    pub close_heard: bool,
    /// Whether the socket reported a sample yet.
    pub sampled: bool,
    /// Congestion control that the path's loss suggests (F14).
    pub congestion_control: &'static str,
    /// What TCP had acknowledged when it held nothing last.
    pub rested: Option<u64>,
}

/// One path: its subflow if it has one, what it owes and what is known of it.
#[derive(Debug)]
pub(crate) struct PathState {
    /// The path.
    pub id: PathId,
    /// The client's name for it.
    pub name: String,
    /// Its TCP connection.
    pub subflow: Option<Subflow>,
    /// Stream bytes that it owes, in the order in which they left.
    pub in_flight: VecDeque<Chunk>,
    /// What is known of it.
    pub(crate) model: PathModel,
    /// Its reliability.
    pub reliability: Reliability,
    /// Whether it can be relied on.
    pub health: Health,
    /// Since when it is suspect, if it is.
    pub suspect_since: Option<Instant>,
    /// How the user wants it to be used (F15).
    pub policy: PathPolicy,
    /// What it has been given beside other paths with a weight (F15).
    pub share: Share,
    /// What keeps it below its rate cap.
    limit: Option<RateLimit>,
    /// Whether it waits because a path of a better priority is active (F15).
    pub standby: bool,
    /// One-way delay, comparable between paths.
    pub one_way: OneWay,
    room: Room,
    /// What it may hold at most because of other paths (F17).
    pub allowance: Option<u64>,
    /// What a scheduler's punishment left of the congestion window, while that is larger.
    punished: Option<u64>,
    /// The part of the window that is used from the next sample on (F14).
    pub scale: f64,
    last_reliability: Instant,
    /// Attempts at a fresh subflow.
    pub(crate) redials: Redials,
    /// When a subflow beside this one was last asked for.
    pub redial_asked: Option<Instant>,
    /// Whether the peer asked for it: its bytes are stuck, even if those of this end move.
    pub peer_asks: bool,
    /// Since when there has been nothing new to send.
    pub idle_since: Option<Instant>,
    /// Counters for people.
    pub counters: PathCounters,
}

/// What a path has done so far, in bytes and events.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PathCounters {
    /// Stream bytes sent for the first time.
    pub new_bytes: u64,
    /// Stream bytes sent again, by [`CopyReason`].
    pub copied: [u64; 5],
    /// Stream bytes received, duplicates included.
    pub received: u64,
    /// Of those, what had been received before.
    pub duplicate: u64,
    /// Subflows that it has had.
    pub subflows: u64,
    /// Times it became suspect.
    pub suspected: u64,
    /// TCP bytes sent and retransmitted by earlier subflows.
    pub past_sent: u64,
    /// See `past_sent`.
    pub past_retransmitted: u64,
    /// TCP bytes received by earlier subflows.
    pub past_received: u64,
}

impl Subflow {
    /// Whether the peer owes an answer for too long (F9).
    pub(crate) fn is_unanswered(&self, now: Instant) -> bool {
        self.answers.deadline(&self.progress).is_some_and(|at| at <= now)
    }

    /// `bytes` of `stream` arrived, its end with them or not.
    pub(crate) fn arrived(&mut self, stream: StreamId, bytes: u64, fin: bool) {
        self.unacked += bytes;
        self.ack_streams.insert(stream);
        if fin {
            self.owe(stream);
        }
    }

    /// An acknowledgement of `stream` is owed, and without patience: somebody
    /// may wait for it.
    pub(crate) fn owe(&mut self, stream: StreamId) {
        self.ack_streams.insert(stream);
        self.unacked = self.unacked.max(ACK_BYTES);
    }

    /// When the acknowledgements that are owed leave (F8): `interval` after
    /// the last ones, and later while only little has arrived, because each
    /// costs both ends as much as a frame.
    pub(crate) fn ack_at(&self, interval: Duration) -> Option<Instant> {
        let patience = if self.unacked < ACK_BYTES { ACK_PATIENCE } else { 1 };
        let patience = if self.ack_hurries { 0 } else { patience };
        (!self.ack_streams.is_empty()).then(|| self.last_ack + interval * patience)
    }

    /// How long TCP or the peer itself has been silent.
    pub(crate) fn silence(&self, now: Instant) -> Duration {
        self.progress.dead_time(now).max(self.answers.silence(now))
    }
}

impl PathState {
    /// A path without a subflow.
    pub(crate) fn new(id: PathId, name: &str) -> Self {
        Self {
            id,
            name: name.into(),
            subflow: None,
            in_flight: VecDeque::new(),
            model: PathModel::default(),
            reliability: Reliability::default(),
            health: Health::Dead,
            suspect_since: None,
            policy: PathPolicy::default(),
            share: Share::default(),
            limit: None,
            standby: false,
            one_way: OneWay::default(),
            room: Room::initial(),
            allowance: None,
            punished: None,
            scale: 1.0,
            last_reliability: Instant::ZERO,
            redials: Redials::default(),
            redial_asked: None,
            peer_asks: false,
            idle_since: None,
            counters: PathCounters::default(),
        }
    }

    /// Gives the path a fresh subflow.
    pub(crate) fn attach(&mut self, now: Instant, id: SubflowId, floor: Duration) {
        self.subflow = Some(Subflow {
            id,
            since: now,
            sample: SubflowSample::default(),
            since_sample: 0,
            progress: Progress::new(now, floor),
            answers: Answers::default(),
            last_ack: Instant::ZERO,
            ack_hurries: false,
            unacked: 0,
            last_input: now,
            last_ping: now,
            ack_streams: BTreeSet::new(),
            ack_from: StreamId::CONTROL,
            idle_at: None,
            session_limit_due: true,
            pong_due: None,
            ping_due: true,
            close_sent: false,
            close_heard: false,
            sampled: false,
            congestion_control: "cubic",
            rested: None,
        });
        self.model.restart();
        self.reliability.restart();
        self.room = Room::initial();
        self.punished = None;
        self.health = Health::Active;
        self.redial_asked = None;
        self.peer_asks = false;
        self.redials.begin();
        self.counters.subflows += 1;
    }

    /// Takes the subflow away.
    pub(crate) fn detach(&mut self) -> Option<Subflow> {
        let subflow = self.subflow.take()?;
        self.counters.past_sent += subflow.sample.sent_total;
        self.counters.past_retransmitted += subflow.sample.retransmitted_total;
        self.counters.past_received += subflow.sample.received_total;
        self.health = Health::Dead;
        Some(subflow)
    }

    /// Takes in what TCP says; says whether it shows progress.
    pub(crate) fn update(&mut self, now: Instant, sample: &SubflowSample, config: &Config) -> bool {
        let Some(subflow) = &mut self.subflow else {
            return false;
        };
        let acked = sample.acked_total.saturating_sub(subflow.sample.acked_total);
        let recovered = self.punished.map(|left| left + acked / 2);
        self.punished = recovered.filter(|left| *left < sample.cwnd);
        let sample = &self.model.update(now, sample);
        subflow.sample = *sample;
        subflow.since_sample = 0;
        subflow.sampled = true;
        if sample.outstanding() == 0 {
            subflow.rested = Some(sample.acked_total);
        }
        self.redials.carried(sample.acked_total);
        let patience = config.suspect_floor + self.model.spread() + self.model.patience(sample.mss);
        let progress = subflow.progress.update(now, sample, patience);
        if sample.outstanding() == 0 {
            subflow.progress.mark(now);
        }
        if now.saturating_since(self.last_reliability) > sample.srtt.max(Duration::from_millis(50))
        {
            self.reliability.update(sample);
            self.last_reliability = now;
        }
        let window = self.window();
        // A punished path is not in slow start, however low its window is: room for as much again
        // would undo the punishment.
        let ssthresh =
            if self.punished.is_some() { sample.ssthresh.min(window) } else { sample.ssthresh };
        let windowed = SubflowSample { cwnd: window, ssthresh, ..*sample };
        self.room = Room::of(config, &self.model, &windowed);
        if self.scale < 1.0 {
            // TCP would send at once what is committed beyond a scaled window.
            self.room.limit = self.room.limit.min(window.max(self.room.frame));
        }
        progress
    }

    /// Whether TCP should spread what it sends on this path (F7). Where acknowledgements are held
    /// back it should not: RTTs would differ by as much as they are, which ends slow start (HyStart,
    /// RFC 9406), while all that is sent when they come has the same RTT.
    pub(crate) fn is_paced(&self) -> bool {
        !self.model.is_gathered()
    }

    /// TCP's congestion window, or what a punishment or its scale left of it, in bytes.
    pub(crate) fn window(&self) -> u64 {
        let window = self.subflow.as_ref().map_or(0, |s| s.sample.cwnd);
        let left = self.punished.map_or(window, |left| left.min(window));
        if self.scale < 1.0 { (left as f64 * self.scale) as u64 } else { left }
    }

    /// TCP's window over its RTT in bytes per second (equation 4.2); none while it carries nothing.
    pub(crate) fn window_rate(&self) -> Option<f64> {
        let sample = &self.subflow.as_ref().filter(|_| self.is_usable())?.sample;
        let rtt = sample.srtt.as_secs_f64();
        (rtt > 0.0).then(|| sample.cwnd as f64 / rtt)
    }

    /// Halves what the path may hold, as MPTCP halves the congestion window
    /// of a subflow that blocks delivery. It grows back by half of what is
    /// acknowledged.
    pub(crate) fn punish(&mut self) {
        let Some(subflow) = &self.subflow else { return };
        let least = u64::from(subflow.sample.mss.max(1));
        let half = (self.window() / 2).max(least);
        self.punished = Some(half);
        self.room.limit = self.room.limit.min(half.max(self.room.frame));
    }

    /// Bytes that the subflow holds (F7).
    pub(crate) fn outstanding(&self) -> u64 {
        self.subflow.as_ref().map_or(0, |s| s.sample.outstanding() + s.since_sample)
    }

    /// Bytes that it holds and that the peer's TCP does not have.
    pub(crate) fn held(&self) -> u64 {
        let sacked = self.subflow.as_ref().map_or(0, |s| s.sample.sacked);
        self.outstanding().saturating_sub(sacked)
    }

    /// Most bytes that it may hold now (F7, F17).
    pub(crate) fn commit_limit(&self) -> u64 {
        self.allowance.map_or(self.room.limit, |bytes| bytes.min(self.room.limit))
    }

    /// The same without regard to other paths (F7).
    pub(crate) const fn own_limit(&self) -> u64 {
        self.room.limit
    }

    /// Payload of one frame, in bytes (F7).
    pub(crate) fn frame(&self) -> u64 {
        match self.policy.rate_cap {
            None => self.room.frame,
            // A capped path's frames are as long as those of a link with that rate.
            Some(cap) => bytes_in(cap.bytes_per_second(), TICK)
                .clamp(LEAST_FRAME.min(self.room.frame), self.room.frame),
        }
    }

    /// Uses the path as `policy` says from now on.
    pub(crate) fn set_policy(&mut self, now: Instant, policy: PathPolicy) {
        if policy.rate_cap != self.policy.rate_cap {
            self.limit = policy.rate_cap.map(|cap| RateLimit::new(now, cap));
        }
        if policy.weight != self.policy.weight {
            self.share = Share::default();
        }
        self.policy = policy;
    }

    /// Whether it costs money or stands by: then it is probed as rarely as if nothing was open.
    pub(crate) const fn is_frugal(&self) -> bool {
        self.policy.metered || self.standby
    }

    /// `bytes` left on the path.
    pub(crate) fn spend(&mut self, now: Instant, bytes: u64) {
        if let Some(limit) = &mut self.limit {
            limit.spend(now, bytes);
        }
    }

    /// When its cap lets the next frame leave; `None` without one.
    pub(crate) fn opens_at(&self) -> Option<Instant> {
        self.limit.as_ref().map(|limit| limit.opens_at(self.frame()))
    }

    /// Whether its cap holds the next frame back.
    pub(crate) fn is_capped(&self, now: Instant) -> bool {
        self.opens_at().is_some_and(|at| at > now)
    }

    /// A rate of the link, or the cap if that is lower, in bytes per second.
    fn usable_rate(&self, rate: f64) -> f64 {
        self.policy.rate_cap.map_or(rate, |cap| rate.min(cap.bytes_per_second()))
    }

    /// The window and the slow-start threshold in bytes; no more than the cap lets out in an RTT: a rule
    /// that counts on the window would wait for a path that may not send it.
    fn usable_window(&self, sample: &SubflowSample) -> (u64, u64) {
        let window = self.window();
        let capped = self.policy.rate_cap.map_or(u64::MAX, |cap| {
            bytes_in(cap.bytes_per_second(), sample.srtt).max(self.frame())
        });
        if capped < window {
            (capped, sample.ssthresh.min(capped))
        } else {
            (window, sample.ssthresh)
        }
    }

    /// Bytes that are given to the socket at once, if there are so many (F7).
    pub(crate) const fn batch(&self) -> u64 {
        self.room.batch
    }

    /// How often TCP should be asked while it holds bytes: a slow path has no
    /// room for the next frame any sooner.
    pub(crate) fn sample_interval(&self) -> Duration {
        let rate = self.model.rate();
        if rate > 0.0 { time_for(self.frame(), rate).clamp(TICK, NOISE / 2) } else { TICK }
    }

    /// Whether one more frame fits under the commit limit. What the peer's
    /// TCP has by selective acknowledgement does not count.
    pub(crate) fn has_room(&self) -> bool {
        self.subflow.is_some() && self.held() + self.room.frame / 2 <= self.commit_limit()
    }

    /// Whether nothing has come for so long that its radio may be asleep (F10).
    pub(crate) fn is_cold(&self, now: Instant) -> bool {
        let silent = |subflow: &Subflow| now.saturating_since(subflow.last_input) >= COLD;
        self.subflow.as_ref().is_some_and(silent)
    }

    /// Whether new bytes may be given to it.
    pub(crate) fn is_usable(&self) -> bool {
        let known = self.subflow.as_ref().is_some_and(|s| s.sampled);
        known && self.health == Health::Active && !self.standby
    }

    /// What schedulers see.
    pub(crate) fn view(&self, now: Instant, pinned: bool) -> PathView {
        let sample = self.subflow.as_ref().map_or_else(
            || SubflowSample { srtt: self.model.base(), ..SubflowSample::default() },
            |s| s.sample,
        );
        let held = self.held();
        let (window, ssthresh) = self.usable_window(&sample);
        PathView {
            id: self.id,
            usable: self.is_usable(),
            rate: self.usable_rate(self.model.rate()),
            delivered_rate: self.usable_rate(self.model.delivered_rate()),
            arrival: self.arrival(now),
            ramping: self.model.is_growing(now),
            srtt: sample.srtt,
            rttvar: sample.rttvar,
            base_rtt: self.model.base(),
            spread: self.model.spread(),
            window,
            ssthresh,
            held,
            room: window.saturating_sub(held),
            ready: self.has_room() && !self.is_capped(now),
            frame: self.frame(),
            mss: u64::from(sample.mss).max(1),
            acknowledged: sample.acked_total,
            reliability: self.reliability,
            pinned,
        }
    }
}

#[cfg(test)]
mod tests;
