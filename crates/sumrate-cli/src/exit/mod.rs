//! The exit: what the server reaches for its clients, and what it refuses to.

mod allowance;
mod associate;
mod dial;
mod pending;
mod policy;
mod resolve;
mod route;
mod stalled;
mod system;

pub use allowance::{Allowance, AllowanceError, Allowances, Places};
pub use associate::Association;
pub use dial::{DialError, Dialer};
pub(crate) use policy::is_private;
pub use policy::{AllowRule, AllowRuleError, Policy, Ports, RefusedReason};
pub use resolve::{ResolveError, Resolver, resolve};
pub(crate) use route::families;
pub(crate) use stalled::Readers;
pub use system::SystemResolver;
