//! The rules of `docs/wire.md` and `docs/sender.md` as two state machines, small enough that
//! every order of events is explored (stateright):
//!
//! - [`transfer`]: one stream over paths that die, fall silent and come back:
//!   windows (F2, F5), redundancy (F6), acknowledgements (F8), delivery (F13)
//!   and close;
//! - [`membership`]: Hello, Join and Welcome between a client, a server and
//!   somebody who has seen all their messages.
//!
//! Which path sends which bytes is left open, so that every placement (F3,
//! F3b) is among the orders explored. Each machine can be built with a planted
//! [`Bug`]; the tests show that every one of them is found. The machines share
//! rules and words with the code, not the code itself: what holds here holds
//! for the rules, and `fbdt-sim` looks for the code's own faults.

pub mod membership;
pub mod transfer;

/// A mistake built in on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bug {
    /// The receiver acknowledges what its subflow brought before it has it:
    /// when the subflow dies in between, the bytes are nowhere (F8).
    AcknowledgeBeforeReceive,
    /// A window counts as done, and its bytes are forgotten, when all of it
    /// was sent, not when all was delivered (F2, F5).
    ReloadBeforeDelivered,
    /// What a lost subflow still owed is not sent again (F6).
    ForgetWhatWasOwed,
    /// A copy that comes second is given to the reader again (F13).
    DeliverCopies,
    /// What was lost of acknowledgements with a subflow is not said again (F8).
    AcknowledgeOnce,
    /// The end of a session looks like the end of its streams.
    CloseLooksLikeEnd,
    /// The server does not compare a Join's proof with its own connection.
    AcceptReplayedJoin,
    /// The server looks only at the session's number in a Join.
    JoinWithoutProof,
    /// The server does not ask whether the credential was revoked meanwhile.
    JoinAfterRevocation,
    /// The client does not compare a Welcome's proof with its own connection.
    AcceptReplayedWelcome,
}
