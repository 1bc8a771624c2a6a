//! How the user wants each path to be used: what can be wished for, how much of a month's quota is
//! used, and what follows from both.

mod claim;
#[cfg(feature = "fuzzing")]
pub(crate) mod fuzzing;
mod keeper;
mod ledger;
mod newcomers;
mod selector;
mod wish;

pub use keeper::{Keeper, PolicyError, Withheld};
pub use ledger::{Ledger, LedgerError, Month};
pub use selector::Selector;
pub use wish::{ClassNames, PathChange, PathWish, WishError};
pub(crate) use wish::{
    level, parse_never, parse_priority, parse_quota, parse_rate_cap, parse_weight,
};
