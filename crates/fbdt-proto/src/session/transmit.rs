//! What leaves on a subflow next.

use alloc::vec::Vec;
use core::ops::Range;
use core::time::Duration;

use super::Session;
use super::copies::{Occasion, SHORT_FLOW};
use super::message_turns::Until;
use super::policy::Appetite;
use super::scheduled::Sent;
use crate::path::{Chunk, CopyReason, Health, PathView};
use crate::schedule::{JustInTime, PlacementRequest, Repeats, Scheduler};
use crate::stats::WhyIdle;
use crate::time::Instant;
use crate::units::{Class, Space, StreamId, SubflowId, time_for};
use crate::wire::{Frame, Outgoing, encode_data_header};

/// Acknowledgements that leave together.
const ACK_BATCH: usize = 256;
/// Added to the expected arrival of a chunk before it counts as overdue.
const ARRIVAL_SLACK: Duration = Duration::from_millis(3);

/// One opportunity of a path to send, until a frame was appended or nothing was found.
pub(super) struct Transmission<'a> {
    pub(super) now: Instant,
    /// The path's index.
    pub(super) path: usize,
    /// All paths as schedulers see them now.
    pub(super) views: &'a [PathView],
    /// Where the frame goes.
    pub(super) out: &'a mut Outgoing,
    /// Why the last kind of sending that was asked for new bytes or messages had none.
    pub(super) refusal: Refusal,
}

/// Why a kind of sending has nothing for a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// The path has no room, or its cap is reached: it sends as soon as that changes.
    Room(WhyIdle),
    /// The path has carried its share and leaves new bytes to paths that have not (F15).
    Share,
    /// Anything else.
    Other(WhyIdle),
}

impl Refusal {
    /// The reason as reports have it.
    const fn why(self) -> WhyIdle {
        match self {
            Self::Room(why) | Self::Other(why) => why,
            Self::Share => WhyIdle::Weight,
        }
    }
}

impl Transmission<'_> {
    /// The path as schedulers see it.
    pub(super) fn view(&self) -> &PathView {
        &self.views[self.path]
    }
}

/// Bytes of a stream, or a message or gap, that leave in one frame.
pub(super) struct Departure {
    /// Where they belong.
    pub(super) space: Space,
    /// Where in it.
    pub(super) range: Range<u64>,
    /// The application's bytes among them.
    pub(super) data: u64,
    /// Why they leave again; `None` for the first time.
    pub(super) copy: Option<CopyReason>,
}

impl Session {
    /// Appends the next frame for `subflow` to `out`; `false` if there is
    /// nothing for it now. Call it while the socket takes bytes.
    pub fn poll_transmit(&mut self, now: Instant, subflow: SubflowId, out: &mut Outgoing) -> bool {
        let Some(path) = self.path_of(subflow) else {
            return false;
        };
        let before = out.len();
        if self.close.is_some() {
            return self.transmit_close(path, out);
        }
        self.transmit_service(now, path, out);
        if out.len() == before {
            self.transmit_data(now, path, out);
        }
        let sent = (out.len() - before) as u64;
        self.paths[path].spend(now, sent);
        let Some(subflow) = &mut self.paths[path].subflow else {
            return sent > 0;
        };
        if sent == 0 {
            subflow.idle_at = Some(self.news);
        } else {
            // Nothing was owed until now: silence counts from here.
            if subflow.sample.outstanding() + subflow.since_sample == 0 {
                subflow.progress.mark(now);
            }
            subflow.since_sample += sent;
        }
        sent > 0
    }

    /// A cheap guess whether [`Session::poll_transmit`] would do anything.
    #[must_use]
    pub fn can_transmit(&self, now: Instant, subflow: SubflowId) -> bool {
        let Some(path) = self.path_of(subflow) else {
            return false;
        };
        let path = &self.paths[path];
        let Some(subflow) = &path.subflow else {
            return false;
        };
        if self.close.is_some() {
            return !subflow.close_sent;
        }
        let acks = subflow.ack_at(self.config.ack_interval).is_some_and(|at| at <= now);
        let service =
            acks || subflow.session_limit_due || subflow.pong_due.is_some() || subflow.ping_due;
        // Subflows that had nothing would wake each other for ever.
        let news = subflow.idle_at != Some(self.news);
        let serving = path.health == Health::Active && !path.standby;
        let sending = serving && !(self.busy.is_empty() && self.talking.is_empty());
        service || (sending && news && path.has_room() && !path.is_capped(now))
    }

    fn transmit_close(&mut self, path: usize, out: &mut Outgoing) -> bool {
        use crate::error::{CloseReason, close_code};
        use alloc::string::ToString;
        let Some(subflow) = &mut self.paths[path].subflow else {
            return false;
        };
        if core::mem::replace(&mut subflow.close_sent, true) {
            return false;
        }
        let (code, reason) = match &self.close {
            Some(CloseReason::Local { code, reason }) => (*code, reason.clone()),
            Some(CloseReason::Protocol(error)) => (error.code(), error.to_string()),
            _ => (close_code::NONE, "closed".into()),
        };
        Frame::Close { code, reason }.encode(out.encoder());
        true
    }

    /// Acknowledgements, limits and probes (F8).
    fn transmit_service(&mut self, now: Instant, path: usize, out: &mut Outgoing) {
        let Some(subflow) = &mut self.paths[path].subflow else {
            return;
        };
        if core::mem::take(&mut subflow.session_limit_due) {
            Frame::SessionLimit { limit: self.credit.receive_limit }.encode(out.encoder());
        }
        if let Some((token, at)) = subflow.pong_due.take() {
            Frame::Pong { token, received: at.as_nanos() }.encode(out.encoder());
        }
        if core::mem::take(&mut subflow.ping_due) {
            Frame::Ping { token: now.as_nanos() }.encode(out.encoder());
            subflow.answers.ask(now);
        }
        if subflow.ack_at(self.config.ack_interval).is_none_or(|at| at > now) {
            return;
        }
        subflow.last_ack = now;
        subflow.unacked = 0;
        for _ in 0..ACK_BATCH {
            // In turn: streams with low numbers may owe again before the last
            // one's turn has come.
            let mut later = subflow.ack_streams.range(subflow.ack_from..);
            let Some(id) = later.next().or(subflow.ack_streams.first()).copied() else {
                break;
            };
            subflow.ack_streams.remove(&id);
            subflow.ack_from = StreamId(id.0.saturating_add(1));
            let space = Space::of_wire(id);
            let ack = match self.streams.get(&space.stream()) {
                Some(stream) => stream.acknowledgement(space),
                None => over(id),
            };
            Frame::Ack(ack).encode(out.encoder());
        }
    }

    fn transmit_data(&mut self, now: Instant, path: usize, out: &mut Outgoing) {
        let took = self.takes_bytes(path);
        let refusal = self.gate(now, path).or_else(|| {
            self.appetites[path] = Appetite::Takes;
            self.transmit_streams(now, path, out)
        });
        self.appetites[path] = match refusal {
            None | Some(Refusal::Room(_)) => Appetite::Takes,
            Some(Refusal::Share) => Appetite::Leaves,
            Some(Refusal::Other(_)) => Appetite::Declines,
        };
        self.enter(now, path, refusal.map_or(WhyIdle::Sending, Refusal::why));
        if took && !self.takes_bytes(path) {
            self.wake_shares(path);
        }
    }

    /// Why a path sends neither bytes nor messages, whatever is pending.
    fn gate(&self, now: Instant, path: usize) -> Option<Refusal> {
        let path = &self.paths[path];
        match path.health {
            Health::Dead => Some(Refusal::Other(WhyIdle::NoSubflow)),
            Health::Suspect => Some(Refusal::Other(WhyIdle::Suspect)),
            // F15: neither new bytes nor copies; probes and acknowledgements do.
            Health::Active if path.standby => Some(Refusal::Other(WhyIdle::Standby)),
            // Nothing is placed on a path of which nothing is known.
            Health::Active if !path.is_usable() => Some(Refusal::Other(WhyIdle::Unmeasured)),
            Health::Active if !path.has_room() => Some(Refusal::Room(WhyIdle::CommitLimit)),
            // F15: the cap holds over any time for everything but acknowledgements and probes.
            Health::Active if path.is_capped(now) => Some(Refusal::Room(WhyIdle::RateCap)),
            Health::Active => None,
        }
    }

    /// Sends the next bytes or message on a path with room; why there was nothing new, if there was not.
    fn transmit_streams(
        &mut self,
        now: Instant,
        path: usize,
        out: &mut Outgoing,
    ) -> Option<Refusal> {
        // F15: what only saves time is not worth a metered path's bytes.
        let frugal = self.paths[path].policy.metered;
        let views = self.views(now);
        self.size_buffers(now, &views);
        self.ask_for_windows(out);
        self.want_for_messages(now, out);
        let refusal = Refusal::Other(WhyIdle::NothingToSend);
        let tx = &mut Transmission { now, path, views: &views, out, refusal };
        let sent = self.transmit_lost(tx)
            || self.transmit_copy(tx, Occasion::Suspect)
            || (!frugal && self.transmit_copy(tx, Occasion::Overdue))
            || (!frugal && self.transmit_copy(tx, Occasion::Prompt))
            || (!frugal && self.transmit_repeated(tx, Repeats::BeforeNew))
            || self.transmit_new(tx);
        if sent {
            self.paths[path].idle_since = None;
            return None;
        }
        if !frugal && self.transmit_repeated(tx, Repeats::AfterNew) {
            self.paths[path].idle_since = None;
            return Some(tx.refusal);
        }
        self.paths[path].idle_since.get_or_insert(now);
        if !frugal {
            self.transmit_copy(tx, Occasion::Idle);
        }
        Some(tx.refusal)
    }

    /// What schedulers see of the paths now.
    pub(super) fn views(&self, now: Instant) -> Vec<PathView> {
        let pinned = self.config.forward.as_deref();
        self.paths.iter().map(|p| p.view(now, pinned == Some(p.name.as_str()))).collect()
    }

    /// What was on a subflow that is gone: the session's own words, then by class, messages before
    /// bytes; but what is new of better classes goes first: a call does not wait until a large
    /// transfer is mended.
    fn transmit_lost(&mut self, tx: &mut Transmission<'_>) -> bool {
        if self.transmit_lost_bytes(tx, None) {
            return true;
        }
        let never = self.paths[tx.path].policy.never;
        let messages = self.lost_messages(tx.path);
        let mut rest = &messages[..];
        for class in Class::ALL {
            let (speaking, worse) = rest.split_at(rest.partition_point(|of| of.class <= class));
            rest = worse;
            let bytes = self.busy.first_lost(Some(class)).is_some() && !never.contains(class);
            if speaking.is_empty() && !bytes {
                continue;
            }
            if self.transmit_better(tx, class)
                || self.transmit_lost_message(tx, speaking)
                || (bytes && self.transmit_lost_bytes(tx, Some(class)))
            {
                return true;
            }
        }
        false
    }

    /// Lost bytes of a class, or of the session's own stream.
    fn transmit_lost_bytes(&mut self, tx: &mut Transmission<'_>, class: Option<Class>) -> bool {
        let frame = self.paths[tx.path].frame();
        while let Some(id) = self.busy.first_lost(class) {
            let Some(stream) = self.streams.get_mut(&id) else {
                self.busy.remove(id);
                continue;
            };
            while let Some(piece) = stream.send.lost.first() {
                let Some(gap) = stream.send.unacknowledged(piece.clone()) else {
                    stream.send.lost.remove(piece);
                    continue;
                };
                let range = gap.start..gap.end.min(gap.start + frame);
                stream.send.lost.remove(piece.start..range.end);
                self.emit(tx, id, range, Some(CopyReason::Lost));
                return true;
            }
            self.refresh_turn(id);
        }
        false
    }

    fn transmit_new(&mut self, tx: &mut Transmission<'_>) -> bool {
        let never = self.paths[tx.path].policy.never;
        let held = self.keeps_waiting(tx.path);
        tx.refusal = Refusal::Other(match held {
            _ if self.busy.any_blocked(never) => WhyIdle::FlowControl,
            true => WhyIdle::KeptOff,
            false => WhyIdle::NothingToSend,
        });
        self.transmit_first(tx, None) || self.transmit_message(tx, Until::all_of(Class::Background))
    }

    /// What is new of this session's own words and of the classes before `class`: it goes before what
    /// is sent again of that one.
    pub(super) fn transmit_better(&mut self, tx: &mut Transmission<'_>, class: Class) -> bool {
        if self.transmit_first(tx, Some(class)) {
            return true;
        }
        let last = Class::ALL.into_iter().rev().find(|better| *better < class);
        last.is_some_and(|last| self.transmit_message(tx, Until::all_of(last)))
    }

    /// The first new bytes that may leave, or a message that goes before them; of the classes before
    /// `end` if there is one.
    fn transmit_first(&mut self, tx: &mut Transmission<'_>, end: Option<Class>) -> bool {
        let mut turn = None;
        // Messages go before the bytes of streams of their class (F16).
        let mut spoken = None;
        while let Some(next) = self.busy.next_ready(turn) {
            let ordinary = next.id != StreamId::CONTROL;
            if ordinary && end.is_some_and(|end| next.class >= end) {
                break;
            }
            turn = Some(next);
            if ordinary && spoken < Some(next.class) {
                spoken = Some(next.class);
                // What is conversational or interactive goes first as messages; else they take turns
                // with the class's streams by what both have been served (F12).
                let prompt = next.class <= Class::Interactive;
                let served = if prompt { u64::MAX } else { next.served };
                let until = Until { class: next.class, served };
                if self.transmit_message(tx, until) {
                    return true;
                }
            }
            if self.is_kept_off(tx.path, next.id) {
                turn = Some(next.end_of_class());
                continue;
            }
            if !self.may_carry(tx.path, next.id) {
                // Nor any behind it: what is urgent comes first.
                tx.refusal = Refusal::Share;
                break;
            }
            let Some(range) = self.place(tx, next.id) else {
                continue;
            };
            // Who was left without bytes in favour of this path asks again: this one's window may be
            // full now, its turn over, or others' bytes assigned.
            self.news += u64::from(self.needs.defers);
            self.emit(tx, next.id, range, None);
            return true;
        }
        false
    }

    /// New bytes of one stream for the path, taken from what is unsent; `None`, with the reason as the
    /// refusal, if it gets none.
    fn place(&mut self, tx: &mut Transmission<'_>, id: StreamId) -> Option<Range<u64>> {
        let (now, path, all_paths) = (tx.now, tx.path, tx.views);
        let views = &*self.views_for(all_paths, id);
        let frame = self.paths[path].frame();
        let credit = self.credit.send_limit.saturating_sub(self.credit.sent);
        let send = &mut self.streams.get_mut(&id)?.send;
        let credit = if id == StreamId::CONTROL { u64::MAX } else { credit };
        let bound = send.bound(credit);
        let front = send.unsent.first().map_or(0, |r| r.start);
        if front >= bound {
            tx.refusal = Refusal::Other(WhyIdle::FlowControl);
            return None;
        }
        let request = PlacementRequest {
            now,
            paths: views,
            all_paths,
            path,
            stream: id,
            bound,
            limit: send.allowance(credit),
            acked: send.cumulative(),
            sharing: self.busy.sharing(send.class),
            unsent: &send.unsent,
            under_way: &Sent { id, send, paths: &self.paths },
            frame,
        };
        // The session's own words go the product's way under any policy.
        let placed = if id == StreamId::CONTROL {
            JustInTime.place(request)
        } else {
            self.scheduler.place(request)
        };
        match &placed {
            Some(range) => send.unsent.remove(range.clone()),
            None => {
                let late = crate::path::lead(views, path) > 0;
                tx.refusal = Refusal::Other(match () {
                    () if self.needs.defers => WhyIdle::LeftToAnother,
                    () if late => WhyIdle::TooLate,
                    () => WhyIdle::WindowsFull,
                });
            }
        }
        placed
    }

    /// Makes the frame and enters it on the path's account.
    pub(super) fn emit(
        &mut self,
        tx: &mut Transmission<'_>,
        id: StreamId,
        range: Range<u64>,
        copy: Option<CopyReason>,
    ) {
        let Some(stream) = self.streams.get_mut(&id) else {
            return;
        };
        let fin = stream.send.includes_end(&range);
        let data = range.end - range.start - u64::from(fin);
        let highest = stream.send.highest_sent();
        let length = u32::try_from(data).unwrap_or(0);
        encode_data_header(tx.out.encoder(), id, range.start, fin, length);
        stream.send.emit(range.clone(), tx.out);
        if copy.is_none() {
            if id != StreamId::CONTROL {
                self.clock.serve(stream.send.class, stream.send.served);
            }
            stream.send.served += data;
            if stream.send.wakes_writer() {
                self.events.push_back(crate::Event::Writable(id));
            }
            // Idle paths copy short flows at once (F10).
            self.news += u64::from(stream.send.is_short_tail(SHORT_FLOW));
        }
        if id != StreamId::CONTROL {
            self.credit.sent += stream.send.highest_sent() - highest;
        }
        if self.needs.repeats.is_some()
            && let Some(subflow) = &self.paths[tx.path].subflow
        {
            self.scheduler.sent(id, subflow.id, &range);
        }
        let space = Space::bytes_of(id);
        self.account(tx, Departure { space, range, data, copy });
        self.refresh_turn(id);
    }

    /// Enters what left on the accounts of its path, class and session.
    pub(super) fn account(
        &mut self,
        tx: &Transmission<'_>,
        Departure { space, range, data, copy }: Departure,
    ) {
        let (now, path, view) = (tx.now, tx.path, tx.view());
        let ordinary = space != Space::Control;
        let class = self.streams.get(&space.stream()).filter(|_| ordinary).map(|s| s.send.class);
        let class = class.map(|class| &mut self.totals.classes[class as usize]);
        let state = &mut self.paths[path];
        match copy {
            Some(reason) => {
                if let Some(class) = class {
                    class.copied[reason as usize] += data;
                }
                state.counters.copied[reason as usize] += data;
                self.totals.copied[reason as usize] += data;
            }
            None => {
                if let Some(class) = class {
                    class.new_bytes += data;
                }
                state.counters.new_bytes += data;
                self.totals.new_bytes += data;
            }
        }
        if let Some(subflow) = &mut state.subflow {
            subflow.answers.ask(now);
        }
        // To its last byte; what little is known of a rate that is still being found out would make
        // that far too long.
        let there = if view.ramping { Duration::ZERO } else { time_for(data, view.rate) };
        state.in_flight.push(Chunk {
            stream: space.to_wire(),
            copied: range.start,
            range,
            sent: now,
            expected: now + view.arrival + there + ARRIVAL_SLACK,
            cold: state.is_cold(now),
        });
        if copy.is_none() && ordinary {
            self.count_share(path, data);
        }
    }
}

/// The acknowledgement of a stream that is over and forgotten.
fn over(stream: StreamId) -> crate::wire::AckFrame {
    crate::wire::AckFrame { stream, cumulative: u64::MAX, limit: 0, ranges: Vec::new() }
}
