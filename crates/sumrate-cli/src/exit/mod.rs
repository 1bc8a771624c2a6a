//! The exit: what the server reaches for its clients, and what it refuses to.

mod allowance;
mod associate;
mod dial;
mod policy;
mod resolve;

pub use allowance::{Allowance, AllowanceError, Allowances, Places};
pub use associate::Association;
pub use dial::{DialError, Dialer};
pub use policy::{AllowRule, AllowRuleError, Policy, RefusedReason};
pub use resolve::{Lookups, ResolveError, Resolver, SystemResolver, resolve};
