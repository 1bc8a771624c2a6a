//! What a client says of a path in its handshake: a name, and how it is used.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::{String, ToString};

use fbdt_units::{Class, Classes, Priority};

use crate::handshake::MAX_PATH_NAME;
use crate::policy::{PathPolicy, RateCap, Weight};

/// A path's name and how it is used (F15). They travel as one text, `NAME` for
/// a path like any other and `NAME;n23;w3;r20M;m;backup` for one that never carries
/// the classes 2 and 3, has a weight and a rate cap, is metered and stands by: in the handshake of version 1
/// a name is any text, so an end that does not know a word shows it as part of
/// the name, and the priority, which was there first, is last.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PathLabel {
    /// The client's name for it.
    pub name: String,
    /// How it is used.
    pub policy: PathPolicy,
}

impl PathLabel {
    /// Longest name that is not cut at this priority, in bytes.
    #[must_use]
    pub const fn name_max(priority: Priority) -> usize {
        if priority.is_primary() {
            MAX_PATH_NAME
        } else {
            MAX_PATH_NAME - 1 - priority.name().len()
        }
    }

    /// The text for the handshake, at most 32 bytes; a longer name is cut.
    #[must_use]
    pub fn encode(&self) -> String {
        let words = words(&self.policy);
        let mut end = self.name.len().min(MAX_PATH_NAME.saturating_sub(words.len()));
        while !self.name.is_char_boundary(end) {
            end -= 1;
        }
        let mut text = self.name[..end].to_string();
        text.push_str(&words);
        text
    }

    /// Reads the text of a handshake. What is no word of a policy belongs to
    /// the name.
    #[must_use]
    pub fn decode(text: &str) -> Self {
        let mut policy = PathPolicy::default();
        let mut name = text;
        // From the end, each word at most once and in order.
        let mut least = 0;
        while let Some((rest, word)) = name.rsplit_once(';') {
            let mut read = policy;
            match read_word(word, &mut read) {
                Some(rank) if rank >= least => (policy, least, name) = (read, rank + 1, rest),
                _ => break,
            }
        }
        Self { name: name.to_owned(), policy }
    }
}

/// The words behind the name, each after a `;`.
fn words(policy: &PathPolicy) -> String {
    let mut words = String::new();
    if !policy.never.is_empty() {
        words.push_str(";n");
        words.extend(policy.never.iter().map(|class| char::from(b'0' + class.to_wire())));
    }
    if let Some(weight) = policy.weight {
        words.push_str(&format!(";w{}", weight.get()));
    }
    if let Some(cap) = policy.rate_cap {
        words.push_str(&format!(";r{}", cap.text()));
    }
    if policy.metered {
        words.push_str(";m");
    }
    if !policy.priority.is_primary() {
        words.push(';');
        words.push_str(policy.priority.name());
    }
    words
}

/// Enters a word; its place from the end, `None` if it is none.
fn read_word(word: &str, policy: &mut PathPolicy) -> Option<u8> {
    if let Some(priority) = Priority::from_name(word).filter(|p| !p.is_primary()) {
        policy.priority = priority;
        return Some(0);
    }
    if word == "m" {
        policy.metered = true;
        return Some(1);
    }
    if let Some(cap) = word.strip_prefix('r').and_then(RateCap::from_text) {
        policy.rate_cap = Some(cap);
        return Some(2);
    }
    if let Some(classes) = word.strip_prefix('n') {
        policy.never = read_classes(classes)?;
        return Some(4);
    }
    let weight = word.strip_prefix('w')?;
    let canonical = !weight.starts_with(['0', '+']);
    policy.weight = Some(Weight::new(weight.parse().ok().filter(|_| canonical)?)?);
    Some(3)
}

/// Numbers of classes, each once and in order; not of all, which would leave nothing.
fn read_classes(numbers: &str) -> Option<Classes> {
    let in_order = numbers.as_bytes().is_sorted_by(|a, b| a < b);
    let class = |number: char| Class::from_wire(u8::try_from(number.to_digit(10)?).ok()?);
    let classes: Option<Classes> = numbers.chars().map(class).collect();
    classes.filter(|classes| in_order && !classes.is_empty() && *classes != Classes::ALL)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn backup_policy(level: u8) -> PathPolicy {
        PathPolicy { priority: Priority::new(level).unwrap(), ..PathPolicy::default() }
    }

    #[test]
    fn f15_the_label_says_how_a_path_is_used() {
        let policy = PathPolicy {
            weight: Weight::new(3),
            rate_cap: RateCap::from_kilobits(20_000),
            metered: true,
            never: Classes::NONE.with(Class::Background).with(Class::Streaming),
            ..backup_policy(2)
        };
        let label = PathLabel { name: "wwan0".into(), policy };
        assert_eq!(label.encode(), "wwan0;n23;w3;r20M;m;backup2");
        assert_eq!(PathLabel::decode("wwan0;n23;w3;r20M;m;backup2"), label);
        let long = PathLabel { name: "enx001122334455".into(), ..label };
        assert_eq!(long.encode(), "enx0011223;n23;w3;r20M;m;backup2", "the name is cut");
        let bad = ["a;w0", "a;w03", "a;w+3", "a;r0k", "a;m;w3", "a;m;m", "a;backup;m", "a;w"];
        let classes = ["a;n", "a;n4", "a;n10", "a;n33", "a;n0123", "a;w3;n3", "a;n-1", "a;né"];
        for name in bad.into_iter().chain(classes) {
            let whole = PathLabel::decode(name);
            assert!(whole.name.starts_with("a;"), "{name}: {whole:?}");
        }
    }

    #[test]
    fn f15_the_label_says_who_stands_by() {
        let backup = PathLabel { name: "lte".into(), policy: backup_policy(1) };
        assert_eq!(backup.encode(), "lte;backup");
        assert_eq!(PathLabel::decode("lte;backup"), backup);
        let third = PathLabel { name: "sat".into(), policy: backup_policy(3) };
        assert_eq!(third.encode(), "sat;backup3");
        for name in ["wifi", "a;b", "lte;primary", "lte;backup10", "lte;backup1", ";", ""] {
            let label = PathLabel { name: name.into(), policy: PathPolicy::default() };
            assert_eq!((PathLabel::decode(name), label.encode()), (label.clone(), name.into()));
        }
    }

    /// All sets but that of every class, with and without words behind them.
    #[test]
    fn f15_the_label_says_which_classes_are_kept_off() {
        let sets = (0..15u8).map(|bits| {
            Class::ALL.into_iter().filter(|class| bits & 1 << class.to_wire() != 0).collect()
        });
        for (bits, never) in sets.enumerate() {
            for others in [backup_policy(0), backup_policy(9)] {
                let policy = PathPolicy { never, weight: Weight::new(7), ..others };
                let label = PathLabel { name: "wwan0".into(), policy };
                let text = label.encode();
                assert_eq!(text.contains(";n"), bits > 0, "{text}");
                assert_eq!(PathLabel::decode(&text), label);
            }
        }
    }

    #[test]
    fn a_long_name_is_cut_and_the_priority_is_not() {
        let label = PathLabel { name: "é".repeat(20), policy: backup_policy(1) };
        let text = label.encode();
        assert!(text.len() <= MAX_PATH_NAME && text.ends_with("é;backup"), "{text}");
        assert_eq!(PathLabel::decode(&text).policy, backup_policy(1));
    }

    proptest! {
        #[test]
        fn round_trip(name in "[a-z;.-]{0,23}", level in 0..=9u8) {
            let label = PathLabel { name, policy: backup_policy(level) };
            prop_assume!(PathLabel::decode(&label.name).name == label.name);
            // A name that ends like a priority is the one thing that cannot be told apart.
            prop_assume!(!label.policy.priority.is_primary() || !label.name.contains(";backup"));
            prop_assert_eq!(PathLabel::decode(&label.encode()), label);
        }
    }
}
