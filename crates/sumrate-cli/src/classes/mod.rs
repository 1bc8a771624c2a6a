//! Which traffic class a connection belongs to (F11): what the user says of its host or port, or
//! what its behaviour looks like.

mod guess;
mod rule;
mod watch;

pub use guess::{DatagramGuess, Guess, Waited};
pub use rule::{ClassRule, ClassRuleError, ClassRules};
pub(crate) use watch::{Watch, WatchedStream};
