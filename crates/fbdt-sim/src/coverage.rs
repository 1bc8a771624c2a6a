//! Which rules (`docs/wire.md`, `docs/sender.md`) a simulation has seen at work.

use std::collections::{BTreeMap, BTreeSet};

use fbdt_proto::{Direction, Event, Frame, Health, PathId, Session, StreamId, WhyIdle, WindowMode};

macro_rules! marks {
    ($($name:ident $rule:literal $words:literal,)*) => {
        /// Something that only happens when a part of a rule is at work.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Mark {
            $(#[doc = $words] $name,)*
        }

        impl Mark {
            /// All of them, in the order of the rules.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// The rule's number, as in `docs/sender.md` or `docs/wire.md`.
            #[must_use]
            pub const fn rule(self) -> &'static str {
                match self { $(Self::$name => $rule,)* }
            }

            /// What was seen.
            #[must_use]
            pub const fn words(self) -> &'static str {
                match self { $(Self::$name => $words,)* }
            }
        }
    };
}

marks! {
    OutOfOrder "F1" "a frame arrived above a hole",
    OtherPathFillsHole "F1" "two paths brought one stream's frames",
    WindowAsked "F2" "a sender asked for a larger window",
    FlowControl "F2" "the receiver's limit stopped a sender",
    Forward "F3" "a forward path sent new bytes",
    Backward "F3" "a backward path sent new bytes",
    JustInTime "F3b" "a path sent just in time",
    TooLate "F3b" "a path would have been too late and got nothing new",
    LeftToAnother "F3b" "a published scheduler left bytes to another path",
    Rescheduled "F3b" "a published scheduler sent bytes again",
    Realigned "F4" "a backward path went on at another place",
    SeveralWindows "F5" "several windows of a stream were open",
    WindowsFull "F5" "all windows were open and handed over",
    ThesisWindow "F5" "one window at a time",
    OverdueCopied "F6" "overdue bytes were copied",
    SuspectCopied "F6" "what a suspect path owed was copied",
    LostAgain "F6" "bytes of a closed subflow were sent again",
    CommitLimit "F7" "a path held as much as it may",
    AckRanges "F8" "an acknowledgement named ranges above a hole",
    AckOtherPath "F8" "one stream's acknowledgements came by several paths",
    Suspect "F9" "a path became suspect",
    Revived "F9" "a suspect path became active again",
    Dead "F9" "a path died",
    AllDownAndBack "F9" "a session outlived all its subflows",
    Redial "F9b" "a suspect path was dialled anew",
    RedialCancelled "F9b" "the old subflow showed life first",
    Replaced "F9b" "a fresh subflow replaced an old one",
    IdleCopied "F10" "an idle path copied a short flow",
    TwoClasses "F11" "streams of two classes waited at the same time",
    SameClass "F12" "two streams of one class waited at the same time",
    Duplicate "F13" "bytes that were there already were skipped",
    CongestionControl "F14" "measured loss suggested another congestion control",
    Standby "F15" "a backup path stood by",
    BackupSent "F15" "a backup path sent new bytes",
    KeptOff "F15" "what waited was kept off a path",
    MessageArrived "F16" "a message arrived",
    MessageOvertook "F16" "a message arrived before one that was sent earlier",
    MessageGap "F16" "a gap took the place of messages",
}

/// A set of [`Mark`]s.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Coverage(u64);

impl Coverage {
    /// Whether this was seen.
    #[must_use]
    pub const fn has(self, mark: Mark) -> bool {
        self.0 & (1 << mark as u64) != 0
    }

    /// All that were seen.
    pub fn marks(self) -> impl Iterator<Item = Mark> {
        Mark::ALL.iter().copied().filter(move |mark| self.has(*mark))
    }

    const fn add(&mut self, mark: Mark) {
        self.0 |= 1 << mark as u64;
    }

    fn add_if(&mut self, mark: Mark, seen: bool) {
        if seen {
            self.add(mark);
        }
    }
}

/// Where one stream's last frame at an end came from.
#[derive(Clone, Copy, Debug)]
struct LastFrame {
    path: usize,
    start: u64,
    end: u64,
    highest: u64,
}

/// Watches what both sessions say and receive.
#[derive(Debug, Default)]
pub(crate) struct Observer {
    pub(crate) coverage: Coverage,
    frames: BTreeMap<(usize, StreamId), LastFrame>,
    by_path: BTreeMap<(usize, StreamId, usize), (u64, u64)>,
    acks: BTreeMap<(usize, StreamId), usize>,
    messages: BTreeMap<(usize, StreamId), u64>,
    health: BTreeMap<(usize, PathId), Health>,
    all_down: bool,
    /// Schedulers that chose between paths: two or more got new bytes.
    pub(crate) placed: BTreeSet<&'static str>,
}

impl Observer {
    /// A frame reaches `end` by `path`.
    pub(crate) fn frame(&mut self, end: usize, path: usize, frame: &Frame) {
        match frame {
            Frame::Data { stream, offset, payload, .. } if *stream != StreamId::CONTROL => {
                self.data(end, path, *stream, *offset, *offset + payload.len() as u64);
            }
            Frame::Ack(ack) => {
                self.coverage.add_if(Mark::AckRanges, !ack.ranges.is_empty());
                let last = self.acks.insert((end, ack.stream), path);
                self.coverage.add_if(Mark::AckOtherPath, last.is_some_and(|last| last != path));
            }
            Frame::Want { .. } => self.coverage.add(Mark::WindowAsked),
            Frame::Message { stream, offset, .. } => {
                self.coverage.add(Mark::MessageArrived);
                let before = self.messages.insert((end, *stream), *offset);
                self.coverage.add_if(Mark::MessageOvertook, before.is_some_and(|b| b > *offset));
            }
            Frame::Gap { .. } => self.coverage.add(Mark::MessageGap),
            _ => {}
        }
    }

    fn data(&mut self, end: usize, path: usize, stream: StreamId, from: u64, to: u64) {
        let last = self.frames.get(&(end, stream)).copied();
        let highest = last.map_or(0, |l| l.highest);
        self.coverage.add_if(Mark::OutOfOrder, from > highest);
        self.coverage.add_if(Mark::OtherPathFillsHole, last.is_some_and(|l| l.path != path));
        let frame = LastFrame { path, start: from, end: to, highest: highest.max(to) };
        self.frames.insert((end, stream), frame);
        let before = self.by_path.insert((end, stream, path), (from, to));
        // Downward, and then somewhere that does not adjoin.
        let jumped = before.is_some_and(|(start, end)| to != start && from != end && to < start);
        self.coverage.add_if(Mark::Realigned, jumped && frame.start < frame.end);
    }

    /// What a session told its driver.
    pub(crate) fn event(&mut self, end: usize, event: &Event) {
        match event {
            Event::Redial { .. } => self.coverage.add(Mark::Redial),
            Event::RedialCancelled { .. } => self.coverage.add(Mark::RedialCancelled),
            Event::SubflowRetired(_) => self.coverage.add(Mark::Replaced),
            Event::CongestionControl { .. } => self.coverage.add(Mark::CongestionControl),
            Event::PathHealth { path, health } => self.path_health(end, *path, *health),
            _ => {}
        }
    }

    fn path_health(&mut self, end: usize, path: PathId, health: Health) {
        let before = self.health.insert((end, path), health);
        self.coverage.add_if(Mark::Suspect, health == Health::Suspect);
        self.coverage.add_if(Mark::Dead, health == Health::Dead);
        let active = health == Health::Active;
        self.coverage.add_if(Mark::Revived, active && before == Some(Health::Suspect));
        self.coverage.add_if(Mark::AllDownAndBack, active && self.all_down);
        self.all_down = self.health.values().all(|health| *health == Health::Dead);
    }

    /// Looks at a session as it is now.
    pub(crate) fn look(&mut self, session: &Session) {
        let stats = session.stats();
        if stats.paths.iter().filter(|path| path.new_bytes > 0).count() > 1 {
            self.placed.insert(session.config().scheduler.name());
        }
        let coverage = &mut self.coverage;
        for path in &stats.paths {
            let sent = path.new_bytes > 0;
            coverage.add_if(Mark::Forward, sent && path.direction == Direction::Forward);
            coverage.add_if(Mark::Backward, sent && path.direction == Direction::Backward);
            coverage.add_if(Mark::JustInTime, sent && path.direction == Direction::JustInTime);
            coverage.add_if(Mark::FlowControl, path.why_idle == WhyIdle::FlowControl);
            coverage.add_if(Mark::TooLate, path.why_idle == WhyIdle::TooLate);
            coverage.add_if(Mark::LeftToAnother, path.why_idle == WhyIdle::LeftToAnother);
            coverage.add_if(Mark::Rescheduled, path.copied_scheduled > 0);
            coverage.add_if(Mark::CommitLimit, path.why_idle == WhyIdle::CommitLimit);
            coverage.add_if(Mark::WindowsFull, path.why_idle == WhyIdle::WindowsFull);
            coverage.add_if(Mark::OverdueCopied, path.copied_overdue > 0);
            coverage.add_if(Mark::SuspectCopied, path.copied_suspect > 0);
            coverage.add_if(Mark::LostAgain, path.resent_lost > 0);
            coverage.add_if(Mark::IdleCopied, path.copied_idle > 0);
            coverage.add_if(Mark::Standby, path.why_idle == WhyIdle::Standby);
            coverage.add_if(Mark::KeptOff, path.why_idle == WhyIdle::KeptOff);
            coverage.add_if(Mark::BackupSent, sent && !path.policy.priority.is_primary());
        }
        coverage.add_if(Mark::Duplicate, stats.duplicate_bytes > 0);
        let thesis = session.config().window_mode == WindowMode::Thesis;
        let mut waiting = [0; 4];
        for stream in &stats.streams {
            coverage.add_if(Mark::SeveralWindows, stream.open_windows > 1);
            coverage.add_if(Mark::ThesisWindow, thesis && stream.open_windows == 1);
            waiting[stream.class as usize] += usize::from(stream.acknowledged < stream.written);
        }
        coverage.add_if(Mark::TwoClasses, waiting.iter().filter(|count| **count > 0).count() > 1);
        coverage.add_if(Mark::SameClass, waiting.iter().any(|count| *count > 1));
    }
}
