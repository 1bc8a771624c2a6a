//! What can be wished for a path, and changed.

use fbdt_proto::{Class, Classes, PathPolicy, Priority, RateCap, Weight};
use serde::{Deserialize, Serialize};

use crate::status::bytes as in_words;
use crate::units::{bytes, rate};

/// How one path is to be used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PathWish {
    /// What the transport does about it, on both ends.
    pub policy: PathPolicy,
    /// Bytes per calendar month, both directions together.
    pub quota: Option<u64>,
    /// Whether the user has taken the path out of use.
    pub paused: bool,
}

/// Classes by name, as in `background+streaming`; `none` for none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Vec<String>", into = "Vec<String>")]
pub struct ClassNames(pub Classes);

impl From<ClassNames> for Vec<String> {
    fn from(names: ClassNames) -> Self {
        names.0.iter().map(|class| class.name().to_owned()).collect()
    }
}

impl TryFrom<Vec<String>> for ClassNames {
    type Error = WishError;

    fn try_from(names: Vec<String>) -> Result<Self, WishError> {
        let class =
            |name: &String| Class::from_name(name).ok_or_else(|| WishError::Class(name.clone()));
        let classes: Classes = names.iter().map(class).collect::<Result<_, _>>()?;
        if classes == Classes::ALL { Err(WishError::NoClassLeft) } else { Ok(Self(classes)) }
    }
}

/// A change of some of it; what is absent stays. 0 lifts a weight, a rate cap or a quota.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PathChange {
    /// 0 carries whenever it can; 1 to 9 stand by for lower ones.
    pub priority: Option<u8>,
    /// Share beside other paths with a weight, 1 to 100.
    pub weight: Option<u8>,
    /// Most that each end sends on it, in kbit/s.
    pub rate_cap_kbps: Option<u32>,
    /// Bytes per calendar month.
    pub quota_bytes: Option<u64>,
    /// Whether its bytes cost money.
    pub metered: Option<bool>,
    /// Whether it is out of use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paused: Option<bool>,
    /// Classes that it never carries.
    // Older daemons refuse what they do not know.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub never: Option<ClassNames>,
}

/// A setting that cannot be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WishError {
    /// Not a priority.
    #[error("`{0}` is not a priority; write primary, backup, backup2 to backup9, or 0 to 9")]
    Priority(String),
    /// Not a weight.
    #[error("`{0}` is not a weight; write 1 to 100, or none")]
    Weight(String),
    /// Not a class.
    #[error(
        "`{0}` is not a class; write conversational, interactive, streaming or background, several with + between them, or none"
    )]
    Class(String),
    /// Every class kept off.
    #[error("--never with every class leaves the path unused; use --path to leave it out")]
    NoClassLeft,
    /// Neither rate nor quantity.
    #[error("{0}")]
    Unit(String),
    /// Not an interface, nor a kind of them.
    #[error(
        "`{0}` names no interface; write a name, a pattern as in enx*, driver:NAME or gateway:ADDRESS"
    )]
    Selector(String),
    /// No setting at all.
    #[error(
        "`{0}` is not a setting; write backup, weight=3, rate=20M, quota=10G, never=background or metered, separated by commas"
    )]
    Unknown(String),
}

/// A priority by name or number.
pub(crate) fn parse_priority(text: &str) -> Result<Priority, WishError> {
    let by_number = || text.parse().ok().and_then(Priority::new);
    Priority::from_name(text).or_else(by_number).ok_or_else(|| WishError::Priority(text.to_owned()))
}

/// A weight; 0 for `none`.
pub(crate) fn parse_weight(text: &str) -> Result<u8, WishError> {
    let known = |value: &u8| Weight::new(*value).is_some();
    if text == "none" {
        return Ok(0);
    }
    text.parse().ok().filter(known).ok_or_else(|| WishError::Weight(text.to_owned()))
}

/// A rate in kbit/s; 0 for `none`.
pub(crate) fn parse_rate_cap(text: &str) -> Result<u32, WishError> {
    if text == "none" {
        return Ok(0);
    }
    rate(text).map(RateCap::kilobits).map_err(WishError::Unit)
}

/// A number of bytes; 0 for `none`.
pub(crate) fn parse_quota(text: &str) -> Result<u64, WishError> {
    if text == "none" { Ok(0) } else { bytes(text).map_err(WishError::Unit) }
}

/// Classes with `+` or `,` between them, or `none`.
pub(crate) fn parse_never(text: &str) -> Result<ClassNames, WishError> {
    let names = text.split(['+', ',']).map(str::to_owned);
    ClassNames::try_from(if text == "none" { Vec::new() } else { names.collect() })
}

impl PathChange {
    /// Reads settings as in `backup,weight=3,rate=20M,quota=10G,never=background,metered`.
    ///
    /// # Errors
    /// The first that cannot be.
    pub fn parse(text: &str) -> Result<Self, WishError> {
        let mut change = Self::default();
        for setting in text.split(',') {
            match setting.split_once('=') {
                None if setting == "metered" => change.metered = Some(true),
                None => {
                    let unknown = |_| WishError::Unknown(setting.to_owned());
                    change.priority = Some(level(parse_priority(setting).map_err(unknown)?));
                }
                Some(("priority", value)) => change.priority = Some(level(parse_priority(value)?)),
                Some(("weight", value)) => change.weight = Some(parse_weight(value)?),
                Some(("rate", value)) => change.rate_cap_kbps = Some(parse_rate_cap(value)?),
                Some(("quota", value)) => change.quota_bytes = Some(parse_quota(value)?),
                Some(("never", value)) => change.never = Some(parse_never(value)?),
                Some(_) => return Err(WishError::Unknown(setting.to_owned())),
            }
        }
        Ok(change)
    }

    /// Whether it changes nothing.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The change for people, as in `lte: backup, at most 20 Mbit/s`.
    pub fn words(&self, name: &str) -> String {
        let priority = self.priority.map(|level| match level {
            0 => "primary".to_owned(),
            1 => "backup".to_owned(),
            later => format!("backup {later}"),
        });
        let lifted = |is_lifted: bool, none: &str, some: String| {
            if is_lifted { none.to_owned() } else { some }
        };
        let weight = self.weight.map(|w| lifted(w == 0, "no weight", format!("weight {w}")));
        let rate = self.rate_cap_kbps.map(|kbps| {
            let words = format!("at most {} Mbit/s", f64::from(kbps) / 1e3);
            lifted(kbps == 0, "no rate limit", words)
        });
        let quota = self.quota_bytes.map(|quota| {
            lifted(quota == 0, "no quota", format!("quota {} a month", in_words(quota)))
        });
        let chosen = |is: bool, yes: &str, no: &str| if is { yes } else { no }.to_owned();
        let metered = self.metered.map(|is| chosen(is, "metered", "not metered"));
        let paused = self.paused.map(|is| chosen(is, "paused", "in use again"));
        let never = self.never.map(|never| match Vec::from(never) {
            none if none.is_empty() => "carries every class".to_owned(),
            classes => format!("never carries {}", classes.join(" or ")),
        });
        let parts = [priority, weight, rate, quota, metered, paused, never];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        format!("{name}: {}", parts.join(", "))
    }

    /// The wish after the change.
    ///
    /// # Errors
    /// A number that is out of range, as it can come over the control socket.
    pub fn apply(&self, wish: PathWish) -> Result<PathWish, WishError> {
        let mut wish = wish;
        if let Some(level) = self.priority {
            let refused = || WishError::Priority(level.to_string());
            wish.policy.priority = Priority::new(level).ok_or_else(refused)?;
        }
        if let Some(weight) = self.weight {
            wish.policy.weight = Weight::new(weight);
            if weight > Weight::MAX {
                return Err(WishError::Weight(weight.to_string()));
            }
        }
        if let Some(rate) = self.rate_cap_kbps {
            wish.policy.rate_cap = RateCap::from_kilobits(rate);
        }
        if let Some(quota) = self.quota_bytes {
            wish.quota = (quota > 0).then_some(quota);
        }
        if let Some(ClassNames(never)) = self.never {
            wish.policy.never = never;
        }
        wish.policy.metered = self.metered.unwrap_or(wish.policy.metered);
        wish.paused = self.paused.unwrap_or(wish.paused);
        Ok(wish)
    }
}

/// The priority's number.
pub(crate) fn level(priority: Priority) -> u8 {
    let position = Priority::NAMES.iter().position(|name| *name == priority.name());
    position.and_then(|position| u8::try_from(position).ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn settings_are_read_and_applied() {
        let text = "backup2,weight=3,rate=20M,quota=10G,never=background+streaming,metered";
        let change = PathChange::parse(text).unwrap();
        let wish = change.apply(PathWish::default()).unwrap();
        assert_eq!(wish.policy.priority.name(), "backup2");
        assert_eq!(wish.policy.weight, Weight::new(3));
        assert_eq!(wish.policy.rate_cap.unwrap().text(), "20M");
        assert_eq!((wish.quota, wish.policy.metered), (Some(10_000_000_000), true));
        assert_eq!(Vec::from(ClassNames(wish.policy.never)), ["streaming", "background"]);
        let json = serde_json::to_string(&change).unwrap();
        assert_eq!(serde_json::from_str::<PathChange>(&json).unwrap(), change);
        let lifted = "rate=none,quota=none,weight=none,never=none,priority=0";
        let lifted = PathChange::parse(lifted).unwrap();
        let rest = lifted.apply(wish).unwrap();
        let metered = PathPolicy { metered: true, ..PathPolicy::default() };
        assert_eq!(rest, PathWish { policy: metered, ..PathWish::default() });
        assert!(PathChange::default().is_empty() && !lifted.is_empty());
    }

    #[test]
    fn a_change_is_told_in_words() {
        let words = |change: PathChange| change.words("lte");
        let change = PathChange::parse("backup2,rate=20M,quota=10G,metered").unwrap();
        let said = "lte: backup 2, at most 20 Mbit/s, quota 10.0 GB a month, metered";
        assert_eq!(words(change), said);
        let lifted = "rate=none,quota=none,weight=none,never=none,priority=0";
        let said = "lte: primary, no weight, no rate limit, no quota, carries every class";
        assert_eq!(words(PathChange::parse(lifted).unwrap()), said);
        let paused = |paused| PathChange { paused: Some(paused), ..PathChange::default() };
        assert_eq!(words(paused(true)), "lte: paused");
        assert_eq!(words(paused(false)), "lte: in use again");
        let wish = paused(true).apply(PathWish::default()).unwrap();
        assert!(wish.paused && !paused(false).apply(wish).unwrap().paused);
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let numbers = ["weight=0", "weight=101", "rate=0", "quota=x"];
        let all = "never=conversational+interactive+streaming+background";
        let classes = ["never=", "never=bulk", "never=background+", all];
        for bad in ["", "backup,", "fast", "color=1"].into_iter().chain(numbers).chain(classes) {
            assert!(PathChange::parse(bad).is_err(), "{bad}");
        }
        let out_of_range = [
            PathChange { priority: Some(10), ..PathChange::default() },
            PathChange { weight: Some(101), ..PathChange::default() },
        ];
        for change in out_of_range {
            assert!(change.apply(PathWish::default()).is_err(), "{change:?}");
        }
    }

    proptest! {
        #[test]
        fn never_panics(text in "\\PC{0,60}") {
            let _ = PathChange::parse(&text);
        }
    }
}
