//! The exit: what the server reaches for its clients, and what it refuses to.

mod dial;
mod policy;
mod resolve;

pub use dial::{DialError, Dialer};
pub use policy::{AllowRule, AllowRuleError, Policy, RefusedReason};
pub use resolve::{ResolveError, resolve};
