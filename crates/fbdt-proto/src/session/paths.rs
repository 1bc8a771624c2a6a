//! Subflows come, go, fall silent and come back.
//!
//! Rules: F9, F9b.

use alloc::collections::BTreeMap;
use core::ops::Range;
use core::time::Duration;

use fbdt_coupling::{Observation, SharedBottleneck, WindowGrowth};
use fbdt_units::{Instant, PathId, RangeSet, Role, Space, SubflowId, SubflowSample};
use fbdt_wire::ControlMessage;

use super::Session;
use super::policy::Appetite;
use super::send::Refusal;
use crate::error::CloseReason;
use crate::event::Event;
use crate::path::{Health, PathState, forward_delay, suggested_congestion_control, window_factor};
use crate::scale::{HICCUP, TICK};
use crate::schedule::in_service;
use crate::stats::{IdleTimes, WhyIdle};

/// A session that has carried nothing for this long is probed rarely.
const QUIET: Duration = Duration::from_secs(10);

impl Session {
    /// A subflow of `path` is up. It replaces an older one, which the driver
    /// is told to reset (F9b).
    pub fn subflow_up(&mut self, now: Instant, path: PathId, name: &str) -> SubflowId {
        let id = SubflowId(self.next_subflow);
        self.next_subflow += 1;
        let index = self.paths.iter().position(|p| p.id == path).unwrap_or_else(|| {
            self.paths.push(PathState::new(path, name));
            self.why_idle.push(IdleTimes::new(now));
            self.appetites.push(Appetite::Declines);
            self.paths.len() - 1
        });
        self.paths[index].name = name.into();
        self.drop_subflow(index, true);
        self.paths[index].attach(now, id, self.config.suspect_floor);
        self.conclude(now, index, Some(Refusal::Other(WhyIdle::Unmeasured)));
        if let Some(coupling) = &mut self.coupling {
            coupling.restart(path);
        }
        self.all_down_since = None;
        self.set_health(index, Health::Active);
        // What the lost subflow carried of acknowledgements and limits is
        // said again.
        self.announce_all();
        id
    }

    /// The socket of `subflow` failed or was closed.
    pub fn subflow_down(&mut self, now: Instant, subflow: SubflowId) {
        let Some(index) = self.path_of(subflow) else {
            return;
        };
        self.drop_subflow(index, false);
        self.conclude(now, index, Some(Refusal::Other(WhyIdle::NoSubflow)));
        self.scheduler.path_failed(self.paths[index].id);
        self.set_health(index, Health::Dead);
        self.announce_all();
        if self.paths.iter().all(|p| p.subflow.is_none()) {
            self.all_down_since = Some(now);
        }
        self.leave(now);
    }

    /// Since when no path has had a subflow, if none has one now.
    #[must_use]
    pub fn without_path_since(&self) -> Option<Instant> {
        self.all_down_since
    }

    /// The path's interface is gone; its subflow is given up.
    pub fn path_removed(&mut self, now: Instant, path: PathId) {
        let subflow = self.paths.iter().find(|p| p.id == path).and_then(|p| p.subflow.as_ref());
        if let Some(id) = subflow.map(|s| s.id) {
            self.subflow_down(now, id);
            self.events.push_back(Event::SubflowRetired(id));
        }
        if let Some(coupling) = &mut self.coupling {
            coupling.forget(now, path);
        }
    }

    /// What TCP says about `subflow`. Must be called at least every 5 ms
    /// while [`Session::needs_sample`], and with fresh values.
    pub fn handle_sample(&mut self, now: Instant, subflow: SubflowId, sample: &SubflowSample) {
        let Some(index) = self.path_of(subflow) else {
            return;
        };
        let factor = self.factor_of(index);
        let config = &self.config;
        let path = &mut self.paths[index];
        path.scale = factor;
        let progress = path.update(now, sample, config);
        let loss = path.reliability.loss();
        if let Some(state) = &mut path.subflow {
            let algorithm = suggested_congestion_control(loss, state.congestion_control);
            if algorithm != state.congestion_control {
                state.congestion_control = algorithm;
                self.events.push_back(Event::CongestionControl { subflow, algorithm });
            }
        }
        self.couple(now, index, sample);
        let path = &mut self.paths[index];
        let idle = sample.outstanding() == 0;
        let answered = path.subflow.as_ref().is_some_and(|s| !s.is_unanswered(now));
        let overdue = path.subflow.as_ref().is_some_and(|s| now >= s.progress.deadline());
        match path.health {
            Health::Suspect if answered && (progress || idle) => self.revive(index),
            Health::Suspect => self.ask_redial(now, index),
            Health::Active if !idle && overdue => self.suspect(now, index),
            _ => {}
        }
    }

    /// Whether TCP should spread what it sends on `path` (F7); asked when a subflow comes up.
    #[must_use]
    pub fn is_paced(&self, path: PathId) -> bool {
        self.paths.iter().find(|p| p.id == path).is_none_or(PathState::is_paced)
    }

    /// Which part of its window a path may use (F14): less than 1 if it shares a bottleneck.
    fn factor_of(&self, index: usize) -> f64 {
        let shared = &self.config.shared_bottleneck;
        if *shared == SharedBottleneck::None || !shared.contains(&self.paths[index].name) {
            return 1.0;
        }
        let sharing = self.paths.iter().filter(|path| shared.contains(&path.name));
        window_factor(sharing.filter_map(PathState::window_rate))
    }

    /// F17: what a sample of one path means for what all may hold.
    fn couple(&mut self, now: Instant, index: usize, sample: &SubflowSample) {
        let Some(coupling) = &mut self.coupling else { return };
        let path = &self.paths[index];
        let algorithm = path.subflow.as_ref().map(|s| s.congestion_control);
        // RTTs that held-back acknowledgements make show no queue (F7).
        let window_based = path.is_paced()
            && (self.config.window_growth != WindowGrowth::Auto || algorithm != Some("bbr"));
        let in_flight = sample.in_flight.saturating_sub(sample.sacked);
        let limit = path.own_limit();
        let seen = Observation { path: path.id, sample: *sample, in_flight, limit, window_based };
        coupling.observe(now, &seen);
        for path in &mut self.paths {
            path.allowance = coupling.allowance(path.id);
        }
    }

    /// How often [`Session::handle_sample`] should be called for `subflow`
    /// while [`Session::needs_sample`].
    #[must_use]
    pub fn sample_interval(&self, subflow: SubflowId) -> Duration {
        self.path_of(subflow).map_or(TICK * 2, |index| self.paths[index].sample_interval())
    }

    /// Bytes for which to call [`Session::poll_transmit`] before the socket is given them: more
    /// than a frame only on links that carry several in a fifth of a millisecond (F7).
    #[must_use]
    pub fn batch(&self, subflow: SubflowId) -> usize {
        let batch = self.path_of(subflow).map_or(0, |index| self.paths[index].batch());
        usize::try_from(batch).unwrap_or(usize::MAX)
    }

    /// Whether `subflow` holds bytes, so that silence on it means something,
    /// or nothing is known of it yet.
    #[must_use]
    pub fn needs_sample(&self, subflow: SubflowId) -> bool {
        self.path_of(subflow).is_some_and(|i| {
            let new = self.paths[i].subflow.as_ref().is_some_and(|s| !s.sampled);
            new || self.paths[i].outstanding() > 0
        })
    }

    pub(super) fn path_of(&self, subflow: SubflowId) -> Option<usize> {
        self.paths.iter().position(|p| p.subflow.as_ref().is_some_and(|s| s.id == subflow))
    }

    /// Takes the subflow off the path; what it owed and nobody else carries
    /// is lost.
    fn drop_subflow(&mut self, index: usize, retire: bool) {
        let path = &mut self.paths[index];
        let Some(old) = path.detach() else { return };
        let mut owed = BTreeMap::<Space, RangeSet>::new();
        for chunk in core::mem::take(&mut path.in_flight) {
            owed.entry(Space::of_wire(chunk.stream)).or_default().insert(chunk.range);
        }
        let mut lost = owed.clone();
        for chunk in self.paths.iter_mut().flat_map(|path| path.in_flight.iter_mut()) {
            let space = Space::of_wire(chunk.stream);
            let Some(shared) = owed.get(&space) else { continue };
            let Some(first) = shared.first_within(chunk.range.clone()) else { continue };
            // What carries it still may be copied again.
            chunk.copied = chunk.copied.min(first.start);
            if let Some(lost) = lost.get_mut(&space) {
                lost.remove(chunk.range.clone());
            }
            if space.is_messages()
                && let Some(stream) = self.streams.get_mut(&space.stream())
                && let Some(channel) = &mut stream.messages
            {
                channel.out.uncopied(chunk.range.clone());
            }
        }
        for (space, ranges) in lost {
            ranges.iter().for_each(|range| self.lose(space, range));
            if !space.is_messages() {
                self.refresh_turn(space.stream());
            }
        }
        if retire {
            self.events.push_back(Event::SubflowRetired(old.id));
        }
    }

    /// What of the range is not acknowledged is to be sent again.
    fn lose(&mut self, space: Space, range: Range<u64>) {
        let Some(stream) = self.streams.get_mut(&space.stream()) else { return };
        if space.is_messages() {
            if let Some(channel) = &mut stream.messages {
                channel.out.lose(range);
            }
            return;
        }
        let mut at = range.start;
        while let Some(gap) = stream.send.unacknowledged(at..range.end) {
            at = gap.end;
            stream.send.lost.insert(gap);
        }
    }

    fn set_health(&mut self, index: usize, health: Health) {
        let path = &mut self.paths[index];
        path.health = health;
        path.suspect_since = path.suspect_since.filter(|_| health == Health::Suspect);
        self.news += 1;
        self.events.push_back(Event::PathHealth { path: path.id, health });
        self.assign_standby();
    }

    /// Who carries bytes and who stands by (F15). Like a path that fails, one
    /// that stands by again must not be waited for.
    pub(super) fn assign_standby(&mut self) {
        let serving = in_service(self.paths.iter().map(|p| (p.health, p.policy.priority)));
        for path in &mut self.paths {
            let standby = serving.is_some_and(|serving| path.policy.priority > serving);
            if standby == path.standby {
                continue;
            }
            path.standby = standby;
            self.news += 1;
            if standby {
                self.scheduler.path_failed(path.id);
            }
        }
    }

    fn suspect(&mut self, now: Instant, index: usize) {
        let path = &mut self.paths[index];
        path.counters.suspected += 1;
        path.suspect_since = Some(now);
        path.reliability.failed(now);
        path.redial_asked = path.redial_asked.filter(|at| now.saturating_since(*at) < HICCUP);
        self.scheduler.path_failed(path.id);
        self.set_health(index, Health::Suspect);
        self.ask_redial(now, index);
    }

    /// F9b: a fresh subflow comes back sooner than TCP's next timer.
    fn ask_redial(&mut self, now: Instant, index: usize) {
        let path = &self.paths[index];
        // On a path that loses, silence is mostly TCP's own timer.
        let patience = if path.reliability.is_lossy() { HICCUP } else { HICCUP / 10 };
        let young = path.subflow.as_ref().is_some_and(|s| s.silence(now) < patience);
        if !young {
            self.request_redial(now, index);
        }
    }

    /// Asks for a fresh subflow, unless that was done just now.
    fn request_redial(&mut self, now: Instant, index: usize) {
        let path = &mut self.paths[index];
        if path.redial_asked.is_some_and(|at| now.saturating_since(at) < HICCUP * 2) {
            return;
        }
        if !path.redials.take(now) {
            return;
        }
        path.redial_asked = Some(now);
        let path = path.id;
        match self.role {
            Role::Client => self.events.push_back(Event::Redial { path }),
            Role::Server => self.send_control(ControlMessage::Redial { path }),
        }
    }

    fn revive(&mut self, index: usize) {
        let path = &self.paths[index];
        let (path, asked) = (path.id, path.redial_asked.is_some() && !path.peer_asks);
        self.set_health(index, Health::Active);
        if asked {
            match self.role {
                Role::Client => self.events.push_back(Event::RedialCancelled { path }),
                Role::Server => self.send_control(ControlMessage::RedialCancel { path }),
            }
        }
    }

    /// A probe of `path`, sent at `sent`, reached the peer when its clock
    /// showed `received`. All paths are compared anew.
    pub(super) fn handle_pong(&mut self, now: Instant, path: usize, sent: u64, received: u64) {
        // Only what this end sent on its own clock says anything.
        if sent > now.as_nanos() {
            return;
        }
        self.paths[path].one_way.update(now, sent, received);
        self.news += 1;
        let anchor = self
            .paths
            .iter()
            .filter(|p| p.subflow.is_some())
            .filter_map(|p| p.one_way.least().map(|least| (least, p.model.base())))
            .min();
        let Some(anchor) = anchor else { return };
        for path in &mut self.paths {
            let base = path.model.base();
            let least = path.one_way.least();
            path.model.set_there(least.map(|least| forward_delay(least, anchor, base)));
        }
    }

    /// Says all acknowledgements and limits again on every subflow.
    fn announce_all(&mut self) {
        let messages = self.streams.iter().filter(|(_, stream)| stream.messages.is_some());
        let messages = messages.map(|(id, _)| Space::Messages(*id));
        let bytes = self.streams.keys().copied().map(Space::bytes_of);
        let spaces: alloc::vec::Vec<Space> = bytes.chain(messages).collect();
        for subflow in self.subflows() {
            subflow.session_limit_due = true;
            spaces.iter().for_each(|space| subflow.owe(space.to_wire()));
        }
    }

    /// When [`Session::handle_timeout`] should be called if nothing happens.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        if self.close.is_some() {
            return None;
        }
        if let Some(since) = self.all_down_since {
            // Who waits for room is not kept waiting by what nobody wants any more.
            let linger = since + self.config.linger;
            return self.next_expiry().into_iter().chain(self.ends_at()).chain([linger]).min();
        }
        let moving = !self.busy.is_empty()
            || !self.talking.is_empty()
            || self.paths.iter().any(|p| !p.in_flight.is_empty());
        let slowest = self.paths.iter().map(PathState::sample_interval).min().unwrap_or(TICK * 2);
        let tick = moving.then_some(self.tick + slowest.max(TICK * 2));
        let of_path = |path: &PathState| {
            let subflow = path.subflow.as_ref()?;
            let probe = subflow.last_input.max(subflow.last_ping) + self.keepalive_silence(path);
            // What is due already leaves when its socket has room, not by time.
            let acks = subflow.ack_at(self.config.ack_interval).filter(|at| *at > self.tick);
            let answer = subflow.answers.deadline(&subflow.progress);
            let answer = answer.filter(|_| path.health == Health::Active);
            [Some(probe), acks, answer].into_iter().flatten().min()
        };
        let paths = self.paths.iter().filter_map(of_path);
        paths.chain(tick).chain(self.cap_opens()).chain(self.ends_at()).min()
    }

    /// Asks on every path whether it lives, as after a time in which nothing could be noticed.
    pub fn probe_paths(&mut self, now: Instant) {
        for path in &mut self.paths {
            let holds = path.outstanding() > 0;
            let Some(subflow) = &mut path.subflow else { continue };
            if now.saturating_since(subflow.last_ping) >= HICCUP {
                subflow.last_ping = now;
                subflow.ping_due = path.health == Health::Active || !holds;
            }
        }
    }

    /// Silence after which a probe is sent.
    fn keepalive_silence(&self, path: &PathState) -> Duration {
        let (busy, idle) = self.config.keepalive;
        // The control stream is always there.
        let streams = self.streams.len() > 1;
        let carries = self.tick.saturating_since(self.carried.1) < QUIET;
        match self.role {
            // Four probes a second are 5 GB a month.
            _ if streams && carries && !path.is_frugal() => busy,
            Role::Client => idle,
            // One end's probe shows both that the path lives.
            Role::Server => idle * 5 / 4,
        }
    }

    /// A frame arrived: the peer lives, and so does a subflow on which TCP
    /// owes nothing.
    pub(super) fn heard(&mut self, now: Instant, index: usize) {
        let path = &mut self.paths[index];
        if let Some(subflow) = &mut path.subflow {
            subflow.last_input = now;
            subflow.answers.heard();
        }
        if path.health == Health::Suspect && path.outstanding() == 0 {
            self.revive(index);
        }
    }

    /// Suspects subflows whose peer does not answer (F9).
    fn check_answers(&mut self, now: Instant) {
        for index in 0..self.paths.len() {
            let path = &self.paths[index];
            if path.subflow.as_ref().is_some_and(|s| s.is_unanswered(now)) {
                match path.health {
                    Health::Active => self.suspect(now, index),
                    Health::Suspect => self.ask_redial(now, index),
                    Health::Dead => {}
                }
            }
        }
    }

    /// Time has passed: probes, and the end of a session without paths.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.tick = now;
        // Chunks become overdue, and paths less late, as time passes.
        self.news += 1;
        if let Some(since) = self.all_down_since
            && now.saturating_since(since) >= self.config.linger
        {
            self.end(CloseReason::Linger(self.config.linger));
        }
        self.check_answers(now);
        let carried = self.totals.new_bytes + self.totals.received;
        if carried != self.carried.0 {
            self.carried = (carried, now);
        }
        let sending = !self.busy.is_empty() || !self.talking.is_empty();
        self.expire_messages(now);
        self.leave(now);
        for index in 0..self.paths.len() {
            let silence = self.keepalive_silence(&self.paths[index]);
            let path = &mut self.paths[index];
            let (standby, holds) = (path.standby, path.outstanding() > 0);
            let Some(subflow) = &mut path.subflow else { continue };
            let heard = subflow.last_input.max(subflow.last_ping);
            let quiet = now.saturating_since(heard) >= silence;
            let compare = sending && !standby && now.saturating_since(subflow.last_ping) >= HICCUP;
            if quiet || compare {
                subflow.last_ping = now;
                // TCP itself probes a suspect path with what it holds.
                subflow.ping_due = path.health == Health::Active || !holds;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use alloc::vec;
    use alloc::vec::Vec;
    use fbdt_wire::Limits;

    /// Commit limits of three paths with windows of 100, 300 and 100 kB and RTTs of 20, 20 and 80 ms.
    fn limits(shared: SharedBottleneck) -> Vec<u64> {
        let config = Config {
            shared_bottleneck: shared,
            commit: crate::CommitRule::Window,
            ..Config::default()
        };
        let now = Instant::ZERO;
        let mut session = Session::new(now, Role::Client, config, Limits::default()).unwrap();
        let paths = [("a", 100_000, 20), ("b", 300_000, 20), ("c", 100_000, 80)];
        let mut samples = Vec::new();
        for (number, (name, cwnd, rtt)) in (0..).zip(paths) {
            let rtt = Duration::from_millis(rtt);
            let sample =
                SubflowSample { srtt: rtt, min_rtt: rtt, cwnd, mss: 1000, ..Default::default() };
            samples.push((session.subflow_up(now, PathId(number), name), sample));
        }
        for _ in 0..2 {
            for (subflow, sample) in &samples {
                session.handle_sample(now, *subflow, sample);
            }
        }
        session.paths.iter().map(PathState::commit_limit).collect()
    }

    #[test]
    fn f14_paths_of_a_shared_bottleneck_use_a_part_of_their_windows() {
        let whole = limits(SharedBottleneck::None);
        assert!(whole.iter().zip([100_000, 300_000, 100_000]).all(|(got, cwnd)| *got >= cwnd));
        // x = 5, 15 and 1.25 MB/s.
        let factor = 15.0 / 21.25;
        for (got, cwnd) in limits(SharedBottleneck::All).into_iter().zip([1e5, 3e5, 1e5]) {
            assert_eq!(got, (cwnd * factor) as u64);
        }
        let named = limits(SharedBottleneck::Paths(vec!["a".into(), "b".into()]));
        assert_eq!(named, [75_000, 225_000, whole[2]]);
        let alone = limits(SharedBottleneck::Paths(vec!["a".into()]));
        assert_eq!(alone, whole, "one path shares with nobody");
    }

    /// A path sends 1 kB per ms for 1 s. Its peer acknowledges everything once in `wait_ms`. Returns whether its
    /// next subflow is paced.
    fn is_paced_after(wait_ms: u64) -> bool {
        let at = |ms: u64| Instant::from_nanos(ms * 1_000_000);
        let mut session =
            Session::new(at(0), Role::Client, Config::default(), Limits::default()).unwrap();
        let subflow = session.subflow_up(at(0), PathId(0), "a");
        assert!(session.is_paced(PathId(0)));
        for ms in (0..1000).step_by(2) {
            let sample = SubflowSample {
                srtt: Duration::from_millis(35),
                min_rtt: Duration::from_millis(3),
                cwnd: 50_000,
                mss: 1448,
                in_flight: ms % wait_ms * 1000 + 1000,
                acked_total: ms / wait_ms * wait_ms * 1000,
                ..Default::default()
            };
            session.handle_sample(at(ms), subflow, &sample);
        }
        session.subflow_up(at(1000), PathId(0), "a");
        session.is_paced(PathId(0))
    }

    #[test]
    fn f7_a_path_that_gathers_acknowledgements_is_not_paced() {
        assert!(!is_paced_after(46));
        assert!(is_paced_after(2), "acknowledgements come as they should");
    }
}
