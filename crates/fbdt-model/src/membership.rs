//! Who becomes part of a session: Hello, Join and Welcome, and somebody who
//! has seen every message.
//!
//! Each connection has its own exporter (here: its number). The stranger knows
//! all messages ever sent, can open connections of its own, can sit between
//! the client and the server, and can put any message that it has seen on any
//! connection; it cannot make a proof without the key.

use std::collections::BTreeSet;

use stateright::{Model, Property};

use crate::Bug;

/// The server's part.
pub const NO_STRANGER: &str = "no join without the secret";
/// What the operator has taken back is worth nothing.
pub const NO_REVOKED: &str = "nobody joins with a revoked credential";
/// The client's part.
pub const NO_FALSE_SERVER: &str = "no server without the secret";

/// A connection's exporter; a proof is worth something on that one only.
type Exporter = u8;

/// A proof: what it says and the connection that it was made for. Only who has
/// the secret can make one, so that the stranger can but repeat it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs)] // the fields' names say it
pub enum Message {
    /// Opens a session.
    Hello { made_for: Exporter },
    /// Adds a subflow.
    Join { made_for: Exporter },
    /// The server's consent.
    Welcome { made_for: Exporter },
    /// A Join with a wrong proof, as somebody without the key makes it.
    Forged,
}

/// Who is at which end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Ends {
    /// The client and the server.
    Honest,
    /// The stranger and the server.
    StrangerToServer,
    /// The client and the stranger, who claims to be the server.
    ClientToStranger,
}

/// One connection.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Connection {
    ends: Ends,
    /// The client's or the stranger's request was answered or refused.
    asked: bool,
    /// The server took it into the session.
    member: bool,
    /// The client believes that the server consented.
    trusted: bool,
}

/// Everything that anybody knows.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct State {
    connections: Vec<Connection>,
    /// All messages ever sent, the stranger's knowledge.
    seen: BTreeSet<Message>,
    /// The exporter of the connection that opened the session.
    session: Option<Exporter>,
    /// The credential was revoked.
    revoked: bool,
    /// A connection was taken into the session after that.
    late_member: bool,
}

/// What can happen next.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // the fields' names say it
pub enum Action {
    /// Somebody connects.
    Connect { kind: u8 },
    /// The client asks to open or join the session.
    Ask { connection: Exporter },
    /// The stranger puts a message on a connection of its own.
    Inject { connection: Exporter, message: Message },
    /// The operator revokes the credential.
    Revoke,
}

/// How large the machine is.
#[derive(Clone, Copy, Debug)]
pub struct Membership {
    /// Connections that are ever made.
    pub connections: u8,
    /// What is wrong on purpose.
    pub bug: Option<Bug>,
}

const KINDS: [Ends; 3] = [Ends::Honest, Ends::StrangerToServer, Ends::ClientToStranger];

impl Membership {
    /// Whether the server takes this request on that connection.
    fn accepts(&self, state: &State, on: Exporter, message: Message) -> bool {
        let bound =
            |made_for: Exporter| made_for == on || self.bug == Some(Bug::AcceptReplayedJoin);
        let known = !state.revoked || self.bug == Some(Bug::JoinAfterRevocation);
        match message {
            Message::Hello { made_for } => made_for == on && known,
            Message::Join { made_for } => state.session.is_some() && bound(made_for) && known,
            Message::Forged => state.session.is_some() && self.bug == Some(Bug::JoinWithoutProof),
            Message::Welcome { .. } => false,
        }
    }

    /// The server handles a request.
    fn serve(&self, state: &mut State, on: Exporter, message: Message) {
        if !self.accepts(state, on, message) {
            return;
        }
        if matches!(message, Message::Hello { .. }) {
            state.session = state.session.or(Some(on));
        }
        state.late_member |= state.revoked;
        state.connections[usize::from(on)].member = true;
        state.seen.insert(Message::Welcome { made_for: on });
    }

    fn ask(&self, state: &mut State, on: Exporter) {
        let known = state.connections.iter().any(|connection| connection.trusted);
        let message =
            if known { Message::Join { made_for: on } } else { Message::Hello { made_for: on } };
        state.seen.insert(message);
        let connection = &mut state.connections[usize::from(on)];
        connection.asked = true;
        if connection.ends == Ends::Honest {
            self.serve(state, on, message);
            let connection = &mut state.connections[usize::from(on)];
            connection.trusted = connection.member;
        }
    }

    /// The stranger answers the client, or asks the server.
    fn inject(&self, state: &mut State, on: Exporter, message: Message) {
        let connection = &mut state.connections[usize::from(on)];
        match (connection.ends, message) {
            (Ends::ClientToStranger, Message::Welcome { made_for }) => {
                let bound = made_for == on || self.bug == Some(Bug::AcceptReplayedWelcome);
                connection.trusted |= bound;
            }
            (Ends::StrangerToServer, _) => {
                connection.asked = true;
                self.serve(state, on, message);
            }
            _ => {}
        }
    }
}

impl Model for Membership {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        vec![State {
            connections: Vec::new(),
            seen: BTreeSet::from([Message::Forged]),
            session: None,
            revoked: false,
            late_member: false,
        }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        if state.connections.len() < usize::from(self.connections) {
            actions.extend((0..KINDS.len() as u8).map(|kind| Action::Connect { kind }));
        }
        for (on, connection) in (0..).zip(&state.connections) {
            let clients = connection.ends != Ends::StrangerToServer;
            if clients && !connection.asked {
                actions.push(Action::Ask { connection: on });
            }
            if connection.ends != Ends::Honest && (connection.asked || !clients) {
                let inject =
                    |message: &Message| Action::Inject { connection: on, message: *message };
                actions.extend(state.seen.iter().map(inject));
            }
        }
        if !state.revoked && state.session.is_some() {
            actions.push(Action::Revoke);
        }
    }

    fn next_state(&self, state: &State, action: Action) -> Option<State> {
        let mut next = state.clone();
        match action {
            Action::Connect { kind } => {
                let ends = KINDS[usize::from(kind)];
                let connection = Connection { ends, asked: false, member: false, trusted: false };
                next.connections.push(connection);
            }
            Action::Ask { connection } => self.ask(&mut next, connection),
            Action::Inject { connection, message } => self.inject(&mut next, connection, message),
            Action::Revoke => next.revoked = true,
        }
        (next != *state).then_some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(NO_STRANGER, |_, state: &State| {
                !state.connections.iter().any(|c| c.member && c.ends == Ends::StrangerToServer)
            }),
            Property::always(NO_FALSE_SERVER, |_, state: &State| {
                !state.connections.iter().any(|c| c.trusted && c.ends == Ends::ClientToStranger)
            }),
            Property::always(NO_REVOKED, |_, state: &State| !state.late_member),
            Property::sometimes("a client joins with a second subflow", |_, state: &State| {
                state.connections.iter().filter(|c| c.member && c.trusted).count() > 1
            }),
            Property::sometimes("the stranger has a Join to repeat", |_, state: &State| {
                state.seen.iter().any(|m| matches!(m, Message::Join { .. }))
                    && state.connections.iter().any(|c| c.ends == Ends::StrangerToServer)
            }),
        ]
    }
}
