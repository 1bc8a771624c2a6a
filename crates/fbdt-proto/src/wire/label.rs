//! What a client says of a path in its handshake: a name, and how it is used.

use alloc::borrow::ToOwned;
use alloc::string::{String, ToString};

use super::handshake::MAX_PATH_NAME;
use crate::units::Priority;

/// A path's name and priority (F15). They travel as one text, `NAME` for a
/// primary path and `NAME;PRIORITY` for another: in the handshake of version 1
/// a name is any text, so an end that does not know priorities shows it whole
/// and uses the path like any other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PathLabel {
    /// The client's name for it.
    pub name: String,
    /// Whether it carries bytes or stands by.
    pub priority: Priority,
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
        let mut end = self.name.len().min(Self::name_max(self.priority));
        while !self.name.is_char_boundary(end) {
            end -= 1;
        }
        let mut text = self.name[..end].to_string();
        if !self.priority.is_primary() {
            text.push(';');
            text.push_str(self.priority.name());
        }
        text
    }

    /// Reads the text of a handshake. What names no priority belongs to the
    /// name.
    #[must_use]
    pub fn decode(text: &str) -> Self {
        let priority = |(name, word): (&str, &str)| {
            let priority = Priority::from_name(word).filter(|p| !p.is_primary())?;
            Some(Self { name: name.to_owned(), priority })
        };
        let primary = || Self { name: text.to_owned(), priority: Priority::PRIMARY };
        text.rsplit_once(';').and_then(priority).unwrap_or_else(primary)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn f15_the_label_says_who_stands_by() {
        let backup = PathLabel { name: "lte".into(), priority: Priority::BACKUP };
        assert_eq!(backup.encode(), "lte;backup");
        assert_eq!(PathLabel::decode("lte;backup"), backup);
        let third = PathLabel { name: "sat".into(), priority: Priority::new(3).unwrap() };
        assert_eq!(third.encode(), "sat;backup3");
        for name in ["wifi", "a;b", "lte;primary", "lte;backup10", "lte;backup1", ";", ""] {
            let label = PathLabel { name: name.into(), priority: Priority::PRIMARY };
            assert_eq!((PathLabel::decode(name), label.encode()), (label.clone(), name.into()));
        }
    }

    #[test]
    fn a_long_name_is_cut_and_the_priority_is_not() {
        let label = PathLabel { name: "é".repeat(20), priority: Priority::BACKUP };
        let text = label.encode();
        assert!(text.len() <= MAX_PATH_NAME && text.ends_with("é;backup"), "{text}");
        assert_eq!(PathLabel::decode(&text).priority, Priority::BACKUP);
    }

    proptest! {
        #[test]
        fn round_trip(name in "[a-z;.-]{0,23}", level in 0..=9u8) {
            let label = PathLabel { name, priority: Priority::new(level).unwrap() };
            // A name that ends like a priority is the one thing that cannot be told apart.
            prop_assume!(!label.priority.is_primary() || !label.name.contains(";backup"));
            prop_assert_eq!(PathLabel::decode(&label.encode()), label);
        }
    }
}
