//! The exit: what the server reaches for its clients, and what it refuses to.

mod allowance;
mod associate;
mod dial;
mod policy;
mod resolve;

pub use allowance::{Allowance, AllowanceError, Allowances};
pub use associate::Association;
pub use dial::{DialError, Dialer};
pub use policy::{AllowRule, AllowRuleError, Policy, RefusedReason};
pub use resolve::{ResolveError, Resolver, SystemResolver, resolve};
