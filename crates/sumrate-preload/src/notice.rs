//! Messages to the user on standard error.
#![allow(unsafe_code)] // write(2), and nothing that allocates

use std::sync::atomic::{AtomicBool, Ordering};

use crate::original::{errno, set_errno};

/// Writes a line of these parts. `errno` stays.
pub(crate) fn write(parts: &[&[u8]]) {
    let before = errno();
    for part in [&b"sumrate: "[..]].iter().chain(parts).chain(&[&b"\n"[..]]) {
        // SAFETY: the slice is readable; standard error may be closed.
        let _ = unsafe { libc::write(2, part.as_ptr().cast(), part.len()) };
    }
    set_errno(before);
}

/// Writes a line the first time that this process has reason to.
pub(crate) fn write_once(written: &AtomicBool, parts: &[&[u8]]) {
    if !written.swap(true, Ordering::Relaxed) {
        write(parts);
    }
}

/// The beginning of a name that came from anywhere, as text for a terminal.
pub(crate) struct Shown {
    bytes: [u8; 100],
    length: usize,
}

impl Shown {
    pub(crate) fn new(name: &[u8]) -> Self {
        let mut shown = Self { bytes: [0; 100], length: name.len().min(100) };
        for (to, from) in shown.bytes.iter_mut().zip(name) {
            *to = if from.is_ascii_graphic() { *from } else { b'?' };
        }
        shown
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_reach_no_terminal() {
        assert_eq!(Shown::new(b"a\x1b[2J.example").bytes(), b"a?[2J.example");
        assert_eq!(Shown::new(&[b'x'; 300]).bytes(), [b'x'; 100]);
    }

    #[test]
    fn a_line_is_written_once() {
        static WRITTEN: AtomicBool = AtomicBool::new(false);
        write_once(&WRITTEN, &[b"a line of a test"]);
        assert!(WRITTEN.load(Ordering::Relaxed));
    }
}
