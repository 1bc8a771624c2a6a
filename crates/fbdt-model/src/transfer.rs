//! One stream of a few frames over a few paths.

use std::collections::VecDeque;

use stateright::{Model, Property};

use crate::Bug;

/// What the reader was given is what was written.
pub const IN_ORDER: &str = "F13: each byte once and in order";
/// Sender, receiver or a live subflow has every byte.
pub const NO_BYTE_LOST: &str = "no byte is lost: somebody has it";
/// A reader that is told that the stream is over has had all of it.
pub const TRUE_END: &str = "a clean end is the true end";
/// Whatever happens, all arrives in the end.
pub const NO_DEADLOCK: &str = "no deadlock: all arrives, or the session was closed";

/// A set of frame numbers.
type Frames = u16;

const fn bit(frame: u8) -> Frames {
    1 << frame
}

/// How large the machine is; every count is a bound on what is explored.
#[derive(Clone, Copy, Debug)]
pub struct Transfer {
    /// Frames in the stream; its end counts as one more (F2).
    pub frames: u8,
    /// Frames in a transmission window.
    pub window: u8,
    /// Windows that may be open (F5); 1 is the paper's mode.
    pub depth: u8,
    /// Frames that the receiver is willing to hold (F2).
    pub receive_window: u8,
    /// Paths.
    pub paths: u8,
    /// Subflows that may be lost, on all paths together.
    pub losses: u8,
    /// Times that paths may fall silent and be suspected (F9).
    pub silences: u8,
    /// Whether the reader takes at once what it can have.
    pub eager_reader: bool,
    /// Whether either end may close the session at any moment.
    pub close: bool,
    /// What is wrong on purpose.
    pub bug: Option<Bug>,
}

/// What one subflow carries; TCP keeps it in order and whole while it lives.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Subflow {
    /// Frames towards the receiver.
    data: VecDeque<u8>,
    /// Frames that the sender's account of this subflow has (F6).
    owes: Frames,
    /// Frames that others have copied.
    copied: Frames,
    /// The acknowledgement on its way to the sender: the receiver's set at that
    /// time, and how far it has read. One at a time (F8: one per millisecond).
    ack: Option<(Frames, u8)>,
    /// The receiver owes an acknowledgement here (F8).
    ack_due: bool,
    suspect: bool,
}

/// How the reader's stream ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Ending {
    /// The end of the stream.
    Clean,
    /// The session is over.
    Error,
}

/// Everything that both ends and all subflows hold.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct State {
    /// By path; `None` while it has no subflow.
    subflows: Vec<Option<Subflow>>,
    /// Frames that the sender still has.
    buffer: Frames,
    /// Frames that no live subflow was given, in open windows.
    unsent: Frames,
    /// Windows loaded so far.
    loaded: u8,
    /// Frames that the sender knows to have arrived.
    acknowledged: Frames,
    /// Frames that the receiver may be sent up to.
    limit: u8,
    /// Frames that the receiver has or had.
    received: Frames,
    /// Frames that the receiver says that it has.
    claimed: Frames,
    /// What the reader was given, in order.
    delivered: Vec<u8>,
    ending: Option<Ending>,
    /// The end at which the session is closed.
    sender_closed: bool,
    receiver_closed: bool,
    losses: u8,
    silences: u8,
    /// The peer was sent what it had not allowed.
    limit_broken: bool,
}

/// What can happen next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // the fields' names say it
pub enum Action {
    /// F3: this path sends this frame for the first time.
    Send { path: u8, frame: u8 },
    /// F6: this path copies what a suspect one owes.
    Copy { path: u8, owner: u8, frame: u8 },
    /// The receiver takes a frame off a subflow.
    Receive { path: u8 },
    /// F8: the receiver acknowledges on a path that has brought data.
    Acknowledge { path: u8 },
    /// The sender takes an acknowledgement off a subflow.
    TakeAcknowledgement { path: u8 },
    /// F13: the reader takes the prefix.
    Read,
    /// F9: nothing was heard for too long.
    Suspect { path: u8 },
    /// F9: it showed life.
    Revive { path: u8 },
    /// The subflow is lost, with all that is on it.
    Lose { path: u8 },
    /// F9b: the path has a fresh subflow.
    Redial { path: u8 },
    /// The sender's or the receiver's application closes the session.
    Close { sender: bool },
    /// A Close frame reaches the other end.
    TakeClose { path: u8, sender: bool },
    /// F9: an end without any path gives up in the end.
    Linger { sender: bool },
}

impl Transfer {
    const fn all(&self) -> Frames {
        (1 << (self.frames + 1)) - 1
    }

    const fn window_of(&self, index: u8) -> Frames {
        let below = (index as u32) * self.window as u32;
        let mask = ((1u32 << self.window) - 1) << below;
        mask as Frames & self.all()
    }

    /// Windows loaded and not yet done with.
    fn open_windows(&self, state: &State) -> u8 {
        let done = match self.bug {
            Some(Bug::ReloadBeforeDelivered) => !state.unsent,
            _ => state.acknowledged,
        };
        let open = |index: &u8| self.window_of(*index) & !done != 0;
        (0..state.loaded).filter(open).count() as u8
    }

    fn is_wanted(state: &State, frame: u8) -> bool {
        state.unsent & bit(frame) != 0
    }

    fn may_send(&self, state: &State, frame: u8) -> bool {
        frame < state.limit || frame == self.frames && frame <= state.limit
    }

    fn add_sending(&self, state: &State, path: u8, actions: &mut Vec<Action>) {
        if state.sender_closed {
            return;
        }
        for frame in 0..=self.frames {
            if Self::is_wanted(state, frame) && self.may_send(state, frame) {
                actions.push(Action::Send { path, frame });
            }
            for (owner, other) in (0..).zip(&state.subflows) {
                let Some(other) = other.as_ref().filter(|o| o.suspect && owner != path) else {
                    continue;
                };
                let open = other.owes & !other.copied & !state.acknowledged & bit(frame) != 0;
                if open && state.buffer & bit(frame) != 0 {
                    actions.push(Action::Copy { path, owner, frame });
                }
            }
        }
    }

    fn add_subflow(&self, state: &State, path: u8, subflow: &Subflow, actions: &mut Vec<Action>) {
        if !subflow.suspect {
            self.add_sending(state, path, actions);
        }
        if !subflow.data.is_empty() {
            actions.push(Action::Receive { path });
        }
        if subflow.ack_due && subflow.ack.is_none() && !state.receiver_closed {
            actions.push(Action::Acknowledge { path });
        }
        if subflow.ack.is_some() {
            actions.push(Action::TakeAcknowledgement { path });
        }
        let owes = subflow.owes & !state.acknowledged != 0;
        if !subflow.suspect && owes && state.silences > 0 {
            actions.push(Action::Suspect { path });
        }
        if subflow.suspect {
            actions.push(Action::Revive { path });
        }
        if state.losses > 0 {
            actions.push(Action::Lose { path });
        }
        for sender in [true, false] {
            let (from, to) = if sender {
                (state.sender_closed, state.receiver_closed)
            } else {
                (state.receiver_closed, state.sender_closed)
            };
            // It comes behind what was sent before it.
            let behind = if sender { subflow.data.is_empty() } else { subflow.ack.is_none() };
            if from && !to && behind {
                actions.push(Action::TakeClose { path, sender });
            }
        }
    }

    /// What the receiver has taken, up to the first hole.
    fn prefix(&self, received: Frames) -> u8 {
        (received.trailing_ones() as u8).min(self.frames + 1)
    }

    fn receive(&self, state: &mut State, path: u8) {
        let Some(subflow) = &mut state.subflows[usize::from(path)] else { return };
        let Some(frame) = subflow.data.pop_front() else { return };
        subflow.ack_due = true;
        if state.receiver_closed {
            return;
        }
        let read = state.delivered.len() as u8;
        state.limit_broken |= frame < self.frames && frame >= read + self.receive_window;
        let known = state.received & bit(frame) != 0;
        if known && self.bug == Some(Bug::DeliverCopies) && frame < read {
            state.delivered.push(frame);
        }
        state.received |= bit(frame);
        state.claimed |= bit(frame);
    }

    fn acknowledge(&self, state: &mut State, path: u8) {
        let (claimed, read) = (state.claimed, state.delivered.len() as u8);
        let Some(subflow) = &mut state.subflows[usize::from(path)] else { return };
        subflow.ack_due = false;
        let mut said = claimed;
        if self.bug == Some(Bug::AcknowledgeBeforeReceive) {
            said |= subflow.data.iter().fold(0, |set, frame| set | bit(*frame));
        }
        subflow.ack = Some((said, read));
    }

    fn take_acknowledgement(&self, state: &mut State, path: u8) {
        let Some(subflow) = &mut state.subflows[usize::from(path)] else { return };
        let Some((said, read)) = subflow.ack.take() else { return };
        subflow.suspect = false;
        if state.sender_closed {
            return;
        }
        // F8: it frees bytes wherever they were sent.
        state.acknowledged |= said;
        state.buffer &= !said;
        state.unsent &= !said;
        state.limit = state.limit.max((read + self.receive_window).min(self.frames));
    }

    fn lose(&self, state: &mut State, path: u8) {
        state.losses -= 1;
        let Some(subflow) = state.subflows[usize::from(path)].take() else { return };
        if self.bug != Some(Bug::ForgetWhatWasOwed) {
            // F6: what it owed and nobody else was given is lost.
            let lost = subflow.owes & !state.acknowledged & !subflow.copied;
            state.unsent |= lost & state.buffer;
        }
        self.say_all_again(state);
    }

    /// F8: after any change of subflows all acknowledgements are said again.
    fn say_all_again(&self, state: &mut State) {
        if self.bug != Some(Bug::AcknowledgeOnce) {
            for subflow in state.subflows.iter_mut().flatten() {
                subflow.ack_due = true;
            }
        }
    }

    /// F2, F5: the stream's next bytes become transmission windows as soon as
    /// they may.
    fn load_windows(&self, state: &mut State) {
        while !state.sender_closed
            && self.window_of(state.loaded) != 0
            && self.open_windows(state) < self.depth
        {
            self.load(state);
        }
    }

    fn load(&self, state: &mut State) {
        let window = self.window_of(state.loaded);
        state.loaded += 1;
        state.unsent |= window;
        if self.bug == Some(Bug::ReloadBeforeDelivered) {
            // The one buffer is filled anew: what was in it is gone.
            let before = (0..state.loaded - 1).fold(0, |set, index| set | self.window_of(index));
            state.buffer &= !before | state.unsent;
        }
    }

    fn close(&self, state: &mut State, sender: bool) {
        if sender {
            state.sender_closed = true;
            state.unsent = 0;
            return;
        }
        state.receiver_closed = true;
        // What has arrived whole can still be read to its true end.
        if state.received != self.all() && state.ending.is_none() {
            let looks_clean = self.bug == Some(Bug::CloseLooksLikeEnd);
            state.ending = Some(if looks_clean { Ending::Clean } else { Ending::Error });
        }
    }

    fn read(&self, state: &mut State) {
        let next = state.delivered.len() as u8;
        for frame in next..self.prefix(state.received) {
            if frame < self.frames {
                state.delivered.push(frame);
            } else {
                state.ending = Some(Ending::Clean);
            }
        }
        // The limit has moved: the sender hears of it.
        for subflow in state.subflows.iter_mut().flatten() {
            subflow.ack_due = true;
        }
    }

    fn can_read(&self, state: &State) -> bool {
        let prefix = self.prefix(state.received);
        let more = prefix > state.delivered.len() as u8;
        state.ending.is_none() && more && !(state.receiver_closed && state.received != self.all())
    }

    fn is_delivered(&self, state: &State) -> bool {
        state.ending == Some(Ending::Clean) && state.delivered.len() == usize::from(self.frames)
    }
}

impl Model for Transfer {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        let mut first = State {
            subflows: vec![Some(Subflow::default()); usize::from(self.paths)],
            buffer: self.all(),
            unsent: 0,
            loaded: 0,
            acknowledged: 0,
            limit: self.receive_window.min(self.frames),
            received: 0,
            claimed: 0,
            delivered: Vec::new(),
            ending: None,
            sender_closed: false,
            receiver_closed: false,
            losses: self.losses,
            silences: self.silences,
            limit_broken: false,
        };
        self.load_windows(&mut first);
        vec![first]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        for (path, subflow) in (0..).zip(&state.subflows) {
            match subflow {
                Some(subflow) => self.add_subflow(state, path, subflow, actions),
                None if state.sender_closed => {}
                None => actions.push(Action::Redial { path }),
            }
        }
        if state.subflows.iter().all(Option::is_none) {
            // The other end has gone and answers nobody.
            if state.sender_closed && !state.receiver_closed {
                actions.push(Action::Linger { sender: false });
            }
            if state.receiver_closed && !state.sender_closed {
                actions.push(Action::Linger { sender: true });
            }
        }
        if self.can_read(state) && !self.eager_reader {
            actions.push(Action::Read);
        }
        if self.close && !state.sender_closed && !state.receiver_closed {
            actions.extend([true, false].map(|sender| Action::Close { sender }));
        }
    }

    fn next_state(&self, state: &State, action: Action) -> Option<State> {
        let mut next = state.clone();
        match action {
            Action::Send { path, frame } => {
                next.unsent &= !bit(frame);
                hand_over(&mut next, path, frame);
            }
            Action::Copy { path, owner, frame } => {
                if let Some(owner) = &mut next.subflows[usize::from(owner)] {
                    owner.copied |= bit(frame);
                }
                hand_over(&mut next, path, frame);
            }
            Action::Receive { path } => self.receive(&mut next, path),
            Action::Acknowledge { path } => self.acknowledge(&mut next, path),
            Action::TakeAcknowledgement { path } => self.take_acknowledgement(&mut next, path),
            Action::Read => self.read(&mut next),
            Action::Suspect { path } => {
                next.silences -= 1;
                next.subflows[usize::from(path)].as_mut()?.suspect = true;
            }
            Action::Revive { path } => next.subflows[usize::from(path)].as_mut()?.suspect = false,
            Action::Lose { path } => self.lose(&mut next, path),
            Action::Redial { path } => {
                next.subflows[usize::from(path)] = Some(Subflow::default());
                self.say_all_again(&mut next);
            }
            Action::Close { sender } => self.close(&mut next, sender),
            Action::Linger { sender } => self.close(&mut next, sender),
            Action::TakeClose { sender, .. } => self.close(&mut next, !sender),
        }
        self.load_windows(&mut next);
        if self.eager_reader && self.can_read(&next) {
            self.read(&mut next);
        }
        (next != *state).then_some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(IN_ORDER, |_, state: &State| {
                state.delivered.iter().copied().eq(0..state.delivered.len() as u8)
            }),
            Property::always(NO_BYTE_LOST, |model: &Self, state: &State| {
                let on_its_way = |set, frame: &u8| set | bit(*frame);
                let flying = state
                    .subflows
                    .iter()
                    .flatten()
                    .fold(0, |set, subflow| subflow.data.iter().fold(set, on_its_way));
                let closed = state.sender_closed || state.receiver_closed;
                closed || state.buffer | state.received | flying == model.all()
            }),
            Property::always("F2: never more than was allowed", |_, state: &State| {
                !state.limit_broken
            }),
            Property::always(TRUE_END, |model: &Self, state: &State| {
                state.ending != Some(Ending::Clean) || model.is_delivered(state)
            }),
            // Every run is finite, so that 'eventually' is decided at its last state.
            Property::eventually(NO_DEADLOCK, |model: &Self, state: &State| {
                model.is_delivered(state) || (state.receiver_closed && state.ending.is_some())
            }),
            Property::sometimes("F6: a copy comes second", |_, state: &State| {
                state
                    .subflows
                    .iter()
                    .flatten()
                    .any(|s| s.data.iter().any(|f| state.received & bit(*f) != 0))
            }),
            Property::sometimes("all arrives", |model: &Self, state: &State| {
                model.is_delivered(state)
            }),
        ]
    }
}

fn hand_over(state: &mut State, path: u8, frame: u8) {
    if let Some(subflow) = &mut state.subflows[usize::from(path)] {
        subflow.data.push_back(frame);
        subflow.owes |= bit(frame);
    }
}
