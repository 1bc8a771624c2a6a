//! Second copies of what other paths owe (F10).
//!
//! See also F6, F9, F11.

use core::ops::Range;
use core::time::Duration;

use fbdt_units::{Class, Instant, Space, StreamId, bytes_in};

use super::Transmission;
use super::offers::{Again, Kind, Level, Rank, What};
use crate::config::Redundancy;
use crate::path::{Chunk, CopyReason, Health, PathView};
use crate::scale::{FRAME, NOISE, TICK};
use crate::schedule::redundancy::{copy_wins, is_overdue, waited_an_rtt};
use crate::session::Session;
use crate::stream::{SendMessages, SendState};

/// Overdue bytes this far above the hole are copied with it.
const OVERDUE_BATCH: Duration = Duration::from_millis(100);
/// The same if the first radio may be asleep: it takes about so long to wake.
const COLD_SLACK: Duration = Duration::from_millis(150);

/// When a path looks for something to copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Occasion {
    /// A path is suspect (F9).
    Suspect,
    /// Something is overdue (F6).
    Overdue,
    /// Something short and urgent was sent that goes before what this path would send next (F11).
    Prompt,
    /// There is nothing new to send (F10).
    Idle,
}

impl Occasion {
    /// Occasions before a path sends anything new, the first one on metered paths too.
    pub(super) const DUE: [Self; 3] = [Self::Suspect, Self::Overdue, Self::Prompt];

    /// As what a copy is counted, and as what it is offered.
    const fn copy(self) -> (CopyReason, Level, Kind) {
        match self {
            Self::Suspect => (CopyReason::Suspect, Level::Due, Kind::SuspectCopy),
            Self::Overdue => (CopyReason::Overdue, Level::Due, Kind::OverdueCopy),
            Self::Prompt => (CopyReason::Idle, Level::Due, Kind::PromptCopy),
            Self::Idle => (CopyReason::Idle, Level::Idle, Kind::IdleCopy),
        }
    }
}

/// Why a copy by an idle path has no budget.
#[derive(Clone, Copy)]
enum Exemption {
    /// The program asked for it (F16).
    Asked,
    /// It was overdue and a full window waited for it (F6), or the paper's rule asked for it (R10).
    Freeing,
}

/// A copy that a path may send.
pub(super) struct Copied {
    occasion: Occasion,
    found: Candidate,
    /// Why it is free; other copies are paid from the budgets (F6, F11).
    exemption: Option<Exemption>,
}

/// A chunk that may be copied: whose, which, and its first open part.
struct Candidate {
    owner: usize,
    chunk: usize,
    space: Space,
    gap: Range<u64>,
    urgency: Urgency,
}

/// How urgent bytes are that may be copied; the most urgent are the least.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Urgency {
    /// They are not the control stream's.
    ordinary: bool,
    class: Class,
    /// Bytes of the stream that are to be delivered before them.
    ahead: u64,
}

impl Session {
    /// The most urgent copy that the path may send on this occasion, and what it costs.
    pub(super) fn copy_offer(
        &mut self,
        tx: &Transmission<'_>,
        occasion: Occasion,
    ) -> Option<Again> {
        if !self.may_copy(tx.now, occasion) {
            return None;
        }
        let Some(found) = self.find_copy(tx, occasion) else {
            if occasion == Occasion::Overdue {
                self.last_overdue_check = tx.now;
            }
            return None;
        };
        let class = found.urgency.ordinary.then_some(found.urgency.class);
        let exemption = self.exemption(tx, occasion, &found);
        let (_, level, kind) = occasion.copy();
        let rank = Rank::again(level, class, kind);
        Some(Again { rank, what: What::Copy(Copied { occasion, found, exemption }) })
    }

    /// Sends a copy and pays its price.
    pub(super) fn send_copy(&mut self, tx: &mut Transmission<'_>, copied: &Copied) -> bool {
        let Copied { occasion, found, exemption } = copied;
        let whole = found.space.is_messages();
        let frame = if whole { u64::MAX } else { self.paths[tx.path].frame() };
        let range = found.gap.start..found.gap.end.min(found.gap.start.saturating_add(frame));
        if let Some(chunk) = self.paths[found.owner].in_flight.get_mut(found.chunk) {
            chunk.copied = range.end;
        }
        let (reason, ..) = occasion.copy();
        let before = self.totals.copied[reason as usize];
        if whole {
            self.emit_message(tx, found.space.stream(), range, Some(reason));
        } else {
            self.emit(tx, found.space.stream(), range, Some(reason));
        }
        if let Some(exemption) = exemption {
            let bytes = self.totals.copied[reason as usize] - before;
            let class = &mut self.totals.classes[found.urgency.class as usize];
            match exemption {
                Exemption::Asked => class.asked += bytes,
                Exemption::Freeing => class.freeing += bytes,
            }
        }
        true
    }

    /// Why the copy does not use up what others may cost, if it does not.
    fn exemption(
        &self,
        tx: &Transmission<'_>,
        occasion: Occasion,
        found: &Candidate,
    ) -> Option<Exemption> {
        match occasion {
            Occasion::Prompt | Occasion::Idle if self.is_asked(found) => Some(Exemption::Asked),
            Occasion::Idle if self.config.redundancy == Redundancy::RttWait => {
                self.blocks(found.space).then_some(Exemption::Freeing)
            }
            Occasion::Idle => {
                let chunk = self.paths[found.owner].in_flight.get(found.chunk)?;
                self.frees_window(tx, chunk, found).then_some(Exemption::Freeing)
            }
            _ => None,
        }
    }

    /// Whether the program wants the message sent twice whatever it costs (F16).
    fn is_asked(&self, found: &Candidate) -> bool {
        let channel = self.channel_of(found.space);
        channel.is_some_and(|channel| channel.out.may_copy(found.gap.start) == Some(true))
    }

    fn may_copy(&self, now: Instant, occasion: Occasion) -> bool {
        if self.paths.len() < 2 {
            return false;
        }
        match occasion {
            Occasion::Suspect => {
                self.paths.iter().any(|p| p.health == Health::Suspect && !p.in_flight.is_empty())
            }
            Occasion::Overdue => {
                let pause = now.saturating_since(self.last_overdue_check) < TICK / 2;
                self.config.redundancy == Redundancy::ExpectedArrival && !pause
            }
            Occasion::Prompt => {
                self.copies_messages()
                    || self.waiting_class().is_some_and(|class| self.busy.any_better(class))
            }
            Occasion::Idle => !self.busy.is_empty() || self.copies_messages(),
        }
    }

    /// Whether messages of any stream that has some may be copied at once.
    fn copies_messages(&self) -> bool {
        self.talking.iter().any(|id| self.copies_messages_of(*id))
    }

    /// Whether messages of the stream may be copied at once: there may be many of others on their way,
    /// none of which need be looked at.
    fn copies_messages_of(&self, id: StreamId) -> bool {
        let Some(stream) = self.streams.get(&id) else { return false };
        let Some(channel) = &stream.messages else { return false };
        channel.out.asks_copies() || self.copies_by_choice(stream.send.class, &channel.out)
    }

    /// Whether messages of the class may be copied that do not ask for it, of a stream that sends
    /// these (F11). A call has no standing queue: what has one would be slowed down by its copies.
    fn copies_by_choice(&self, class: Class, out: &SendMessages) -> bool {
        self.config.redundancy == Redundancy::ExpectedArrival
            && class <= Class::Interactive
            && out.backlog() <= FRAME
            && self.class_in_budget(class)
    }

    /// Whether nothing that a suspect path owes can be more urgent than this.
    fn is_most_urgent(&self, candidate: &Candidate) -> bool {
        let Urgency { ordinary, class, ahead } = candidate.urgency;
        let own = self.streams.get(&StreamId::CONTROL);
        let spoken = || own.is_none_or(|stream| stream.send.backlog() == 0);
        let talking = self.talking.iter().filter_map(|id| self.streams.get(id));
        let best = talking.map(|stream| stream.send.class).chain(self.busy.best_class()).min();
        !ordinary || (ahead == 0 && best.is_none_or(|best| class <= best) && spoken())
    }

    /// The class of the stream whose turn it is, if there is one and it is not this session's own.
    fn waiting_class(&self) -> Option<Class> {
        let next = self.busy.next_ready(None).filter(|turn| turn.id != StreamId::CONTROL);
        next.map(|turn| turn.class)
    }

    /// Whether the class may spend more on copies by choice (F11).
    fn class_in_budget(&self, class: Class) -> bool {
        let totals = &self.totals.classes[class as usize];
        self.config.class_budgets[class as usize].admits(totals.new_bytes, totals.chosen())
    }

    /// The most urgent chunk of another path that `path` should copy.
    fn find_copy(&self, tx: &Transmission<'_>, occasion: Occasion) -> Option<Candidate> {
        let path = tx.path;
        let mut best: Option<Candidate> = None;
        let messages_only = occasion == Occasion::Prompt
            && !self.waiting_class().is_some_and(|class| self.busy.any_better(class));
        for (owner, state) in self.paths.iter().enumerate() {
            let suspect = state.health == Health::Suspect;
            let off = self.config.redundancy == Redundancy::Off;
            if owner == path || (occasion == Occasion::Suspect) != suspect {
                continue;
            }
            for (index, chunk) in state.in_flight.iter().enumerate() {
                // The sessions' own words must get through in every mode: a
                // redial that waits behind what it should replace helps nobody.
                let space = Space::of_wire(chunk.stream);
                let message = space.is_messages();
                let left_out = match occasion {
                    Occasion::Prompt | Occasion::Idle if message => {
                        !self.copies_messages_of(space.stream())
                    }
                    _ => messages_only && !message,
                };
                if left_out || (off && space != Space::Control) {
                    continue;
                }
                if occasion == Occasion::Overdue && !is_overdue(tx.now, chunk, &tx.views[owner]) {
                    break;
                }
                let Some(candidate) = self.candidate(owner, index, space, chunk) else {
                    continue;
                };
                if best.as_ref().is_some_and(|b| b.urgency <= candidate.urgency)
                    || !self.should_copy(tx, occasion, chunk, &candidate)
                {
                    continue;
                }
                if occasion == Occasion::Suspect && self.is_most_urgent(&candidate) {
                    return Some(candidate);
                }
                best = Some(candidate);
            }
        }
        best
    }

    fn candidate(
        &self,
        owner: usize,
        index: usize,
        space: Space,
        chunk: &Chunk,
    ) -> Option<Candidate> {
        if chunk.copied >= chunk.range.end {
            return None;
        }
        let stream = self.streams.get(&space.stream())?;
        let gap = stream.owed(space, chunk.copied.max(chunk.range.start)..chunk.range.end)?;
        // A message is late by itself, whatever lies below it.
        let ahead = if space.is_messages() { 0 } else { gap.start - stream.send.cumulative };
        let ordinary = space != Space::Control;
        let urgency = Urgency { ordinary, class: stream.send.class, ahead };
        Some(Candidate { owner, chunk: index, space, gap, urgency })
    }

    fn should_copy(
        &self,
        tx: &Transmission<'_>,
        occasion: Occasion,
        chunk: &Chunk,
        candidate: &Candidate,
    ) -> bool {
        let (owner, helper) = (&tx.views[candidate.owner], tx.view());
        let Urgency { ordinary, class, ahead } = candidate.urgency;
        let affordable = !ordinary || self.class_in_budget(class);
        let repaired = || self.is_repaired(candidate);
        let wanted = match occasion {
            Occasion::Suspect => repaired(),
            Occasion::Overdue => {
                affordable
                    && repaired()
                    && ahead <= bytes_in(helper.rate, OVERDUE_BATCH)
                    && copy_wins(&self.config, tx.now, chunk, owner, helper)
            }
            Occasion::Prompt | Occasion::Idle if candidate.space.is_messages() => {
                self.message_copy(candidate, is_crossing(chunk, owner, helper))
            }
            Occasion::Prompt => affordable && self.prompt_copy(tx, chunk, candidate),
            Occasion::Idle => {
                (affordable && self.idle_copy(tx, chunk, candidate))
                    || self.frees_window(tx, chunk, candidate)
            }
        };
        wanted
            && !self.is_kept_off(tx.path, candidate.space.stream())
            && !self.carries(tx.path, candidate.space, candidate.gap.start)
    }

    /// Whether a message that its path lost is worth sending again; streams always are.
    fn is_repaired(&self, candidate: &Candidate) -> bool {
        let channel = self.channel_of(candidate.space);
        channel.is_none_or(|channel| channel.out.is_repaired(candidate.gap.start))
    }

    /// A message is copied to a second path at once: whatever that costs if it says so, else
    /// within its class's budget and if the copy may come first (F16).
    fn message_copy(&self, candidate: &Candidate, crossing: bool) -> bool {
        let Some(channel) = self.channel_of(candidate.space) else { return false };
        let choice = || self.copies_by_choice(candidate.urgency.class, &channel.out);
        let copied = channel.out.may_copy(candidate.gap.start);
        copied.is_some_and(|whatever_it_costs| whatever_it_costs || (crossing && choice()))
    }

    /// What little a better class has on its way goes before a worse class's new bytes (F11).
    fn prompt_copy(&self, tx: &Transmission<'_>, chunk: &Chunk, candidate: &Candidate) -> bool {
        let class = candidate.urgency.class;
        let waiting = self.waiting_class();
        self.config.redundancy == Redundancy::ExpectedArrival
            && class <= Class::Interactive
            && waiting.is_some_and(|waiting| class < waiting)
            && self.is_short(candidate.space)
            && is_crossing(chunk, &tx.views[candidate.owner], tx.view())
    }

    /// Whether a copy of what is overdue is all that this path can do for a stream whose window is
    /// full: until the hole is closed nothing new may be sent, so the copy takes nobody's place (F6).
    fn frees_window(&self, tx: &Transmission<'_>, chunk: &Chunk, candidate: &Candidate) -> bool {
        let (owner, helper) = (&tx.views[candidate.owner], tx.view());
        is_overdue(tx.now, chunk, owner)
            && helper.is_drained()
            && candidate.urgency.ahead <= bytes_in(helper.rate, OVERDUE_BATCH)
            && copy_wins(&self.config, tx.now, chunk, owner, helper)
            && self.blocks(candidate.space)
    }

    /// Whether new bytes of the stream that these bytes belong to wait for a full buffer.
    fn blocks(&self, space: Space) -> bool {
        !space.is_messages() && self.is_blocked(space.stream())
    }

    /// Whether all of the stream was sent and little of it is on its way.
    fn is_short(&self, space: Space) -> bool {
        let stream = self.streams.get(&space.stream()).filter(|_| !space.is_messages());
        stream.is_some_and(|stream| stream.send.is_short_tail(FRAME))
    }

    /// A path without new bytes copies what its copy would win, all of a
    /// short flow (F10), or as the paper says (R10).
    fn idle_copy(&self, tx: &Transmission<'_>, chunk: &Chunk, candidate: &Candidate) -> bool {
        let (now, owner, helper) = (tx.now, &tx.views[candidate.owner], tx.view());
        let state = &self.paths[tx.path];
        match self.config.redundancy {
            Redundancy::Suspect | Redundancy::Off => false,
            Redundancy::RttWait => {
                let idle = state.idle_since.unwrap_or(now);
                state.in_flight.is_empty() && waited_an_rtt(now, idle, owner)
            }
            Redundancy::ExpectedArrival => {
                let Some(stream) = self.streams.get(&candidate.space.stream()) else {
                    return false;
                };
                let crossing = stream.send.is_short_tail(FRAME)
                    && state.outstanding() <= FRAME
                    && is_crossing(chunk, owner, helper);
                // A writer that only pauses is no reason to send all twice, and
                // neither is an end while other streams have bytes to send that may go here.
                let tail = stream.send.state == SendState::Finished
                    && !self.busy.any_unsent(state.policy.never);
                crossing
                    || ((tail || helper.is_drained())
                        && copy_wins(&self.config, now, chunk, owner, helper))
            }
        }
    }

    /// Whether `path` has this byte on its own way already.
    fn carries(&self, path: usize, space: Space, byte: u64) -> bool {
        let name = space.to_wire();
        let mut own = self.paths[path].in_flight.iter();
        own.any(|chunk| chunk.stream == name && chunk.range.contains(&byte))
    }
}

/// Whether a copy of a short flow is not much later than its original (F10); a radio that may be
/// asleep is expected to be late itself.
fn is_crossing(chunk: &Chunk, owner: &PathView, helper: &PathView) -> bool {
    let slack = if chunk.cold { COLD_SLACK } else { NOISE };
    helper.arrival <= owner.arrival * 2 + slack
}
