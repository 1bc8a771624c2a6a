//! Paths as the other end says them: names below a directory, and nothing that leads out of it.

use std::ffi::{CString, OsStr};
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use fbdt_proto::plain_text::plain;

/// Longest path, in bytes.
const PATH_MAX: usize = 4095;
/// Longest name, in bytes.
pub(super) const NAME_MAX: usize = 255;
/// Most names in a path.
pub(super) const DEPTH_MAX: usize = 128;

/// Why a path was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PathError {
    /// No name at all.
    #[error("the path is empty")]
    Empty,
    /// Longer than systems allow.
    #[error("the path is longer than 4095 bytes, a name of it longer than 255, or it is too deep")]
    TooLong,
    /// It begins with a slash.
    #[error("the path is absolute; it must stay below the directory that is offered")]
    Absolute,
    /// A name that is `.` or `..`, or empty, or has a zero byte.
    #[error("the path has a part that is empty, `.` or `..`")]
    Leads,
}

/// One or more names, separated by slashes; none is empty, `.` or `..`.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EntryPath(Vec<u8>);

impl EntryPath {
    /// Checks bytes that came from anywhere.
    ///
    /// # Errors
    /// [`PathError`]
    pub fn new(bytes: &[u8]) -> Result<Self, PathError> {
        if bytes.is_empty() {
            return Err(PathError::Empty);
        }
        if bytes.len() > PATH_MAX {
            return Err(PathError::TooLong);
        }
        if bytes[0] == b'/' {
            return Err(PathError::Absolute);
        }
        let mut depth = 0;
        for name in bytes.split(|byte| *byte == b'/') {
            depth += 1;
            if name.is_empty() || name == b"." || name == b".." || name.contains(&0) {
                return Err(PathError::Leads);
            }
            if name.len() > NAME_MAX || depth > DEPTH_MAX {
                return Err(PathError::TooLong);
            }
        }
        Ok(Self(bytes.to_vec()))
    }

    /// A path as people write it: `.` and double slashes are left out; `None` is the directory itself.
    ///
    /// # Errors
    /// [`PathError`], also for `..`, which would have to be looked up.
    pub fn normal(text: &[u8]) -> Result<Option<Self>, PathError> {
        if text.first() == Some(&b'/') {
            return Err(PathError::Absolute);
        }
        let kept = |name: &&[u8]| !name.is_empty() && *name != b".";
        let names: Vec<&[u8]> = text.split(|byte| *byte == b'/').filter(kept).collect();
        if names.is_empty() { Ok(None) } else { Self::new(&names.join(&b'/')).map(Some) }
    }

    /// Its bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// As a path.
    pub fn as_path(&self) -> &Path {
        Path::new(OsStr::from_bytes(&self.0))
    }

    /// For system calls.
    pub(super) fn to_c_string(&self) -> CString {
        // No name has a zero byte.
        CString::new(self.0.clone()).unwrap_or_default()
    }

    /// Its names, from the first to the last.
    pub(super) fn names(&self) -> impl Iterator<Item = Self> {
        self.0.split(|byte| *byte == b'/').map(|name| Self(name.to_vec()))
    }

    /// The names before the last, if there are any, and the last.
    pub(super) fn split_last(&self) -> (Option<Self>, Self) {
        match self.0.iter().rposition(|byte| *byte == b'/') {
            Some(at) => (Some(Self(self.0[..at].to_vec())), Self(self.0[at + 1..].to_vec())),
            None => (None, self.clone()),
        }
    }

    /// The first name, and the rest if there is any.
    pub(super) fn split_first(&self) -> (Self, Option<Self>) {
        match self.0.iter().position(|byte| *byte == b'/') {
            Some(at) => (Self(self.0[..at].to_vec()), Some(Self(self.0[at + 1..].to_vec()))),
            None => (self.clone(), None),
        }
    }

    /// This path below another.
    ///
    /// # Errors
    /// [`PathError::TooLong`]
    pub(super) fn below(&self, parent: Option<&Self>) -> Result<Self, PathError> {
        match parent {
            Some(parent) => Self::new(&[parent.as_bytes(), b"/", &self.0].concat()),
            None => Ok(self.clone()),
        }
    }
}

impl fmt::Display for EntryPath {
    /// As text for people: no hidden character reaches a terminal.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&plain(&String::from_utf8_lossy(&self.0)))
    }
}

impl fmt::Debug for EntryPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", String::from_utf8_lossy(&self.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn nothing_that_leads_out_is_a_path() {
        for (bad, error) in [
            (&b""[..], PathError::Empty),
            (b"/etc/passwd", PathError::Absolute),
            (b"..", PathError::Leads),
            (b"a/../../b", PathError::Leads),
            (b"a//b", PathError::Leads),
            (b"a/", PathError::Leads),
            (b"./a", PathError::Leads),
            (b"a\0b", PathError::Leads),
        ] {
            assert_eq!(EntryPath::new(bad), Err(error), "{bad:?}");
        }
        assert_eq!(EntryPath::new(&[b'a'; 256]), Err(PathError::TooLong));
        assert!(EntryPath::new(&[b'a'; 255]).is_ok());
        assert_eq!(
            EntryPath::new("a/".repeat(200).trim_end_matches('/').as_bytes()),
            Err(PathError::TooLong)
        );
        assert!(EntryPath::new(b"...").is_ok() && EntryPath::new(b"a b/\xff").is_ok());
    }

    #[test]
    fn what_people_write() {
        let normal = |text: &str| EntryPath::normal(text.as_bytes());
        assert_eq!(normal("./a//b/"), Ok(Some(EntryPath::new(b"a/b").unwrap())));
        assert_eq!((normal(""), normal("."), normal("./")), (Ok(None), Ok(None), Ok(None)));
        assert_eq!(normal("a/../b"), Err(PathError::Leads));
        assert_eq!(normal("/a"), Err(PathError::Absolute));
    }

    #[test]
    fn parts() {
        let path = EntryPath::new(b"a/b/c").unwrap();
        let (parent, last) = path.split_last();
        assert_eq!((parent.unwrap().as_bytes(), last.as_bytes()), (&b"a/b"[..], &b"c"[..]));
        let (first, rest) = path.split_first();
        assert_eq!((first.as_bytes(), rest.unwrap().as_bytes()), (&b"a"[..], &b"b/c"[..]));
        assert_eq!(format!("{}", EntryPath::new(b"a\x1b[2J").unwrap()), "a [2J");
        assert_eq!(format!("{}", EntryPath::new("a\u{202e}b".as_bytes()).unwrap()), "a\u{fffd}b");
    }

    proptest! {
        #[test]
        fn a_path_has_names_only(bytes in prop::collection::vec(prop::sample::select(b"a./\0".to_vec()), 0..12)) {
            if let Ok(path) = EntryPath::new(&bytes) {
                let components: Vec<_> = path.as_path().components().collect();
                let normal = |c: &std::path::Component| matches!(c, std::path::Component::Normal(_));
                prop_assert!(components.iter().all(normal));
            }
        }
    }
}
