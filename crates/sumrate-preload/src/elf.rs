//! Whether a program's own C library can be stood in for, from the first bytes of its file (ELF,
//! gABI version 4.2, chapters 4 and 5).

/// How much of a file [`inspect`] wants to see; less will do where the file is shorter.
pub const HEAD: usize = 16 << 10;

/// Why the library cannot reach a program whose file has another owner's rights, or capabilities.
pub const OTHER_RIGHTS: &str = "runs with rights of its own, for which the loader takes no library";

/// What a file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind<'a> {
    /// A program that the dynamic loader starts, which heeds LD_PRELOAD.
    Dynamic,
    /// The dynamic loader is not the one of this library's C library: musl's, for example.
    OtherLibc,
    /// Statically linked: there is no loader.
    Static,
    /// Written in Go, which makes its system calls itself.
    Go,
    /// Of another processor or word size.
    OtherMachine,
    /// A script, and the line behind its `#!`.
    Script(&'a [u8]),
    /// None of these: the shell may know what it is.
    Unknown,
}

impl Kind<'_> {
    /// Why the preload library cannot reach such a program; `None` if it can.
    pub fn obstacle(&self) -> Option<&'static str> {
        match self {
            Self::Static => Some("is statically linked"),
            Self::Go => Some("is written in Go, which makes its system calls itself"),
            Self::OtherLibc => Some("uses another C library than this machine's glibc"),
            Self::OtherMachine => Some("is for another processor or word size"),
            Self::Dynamic | Self::Script(_) | Self::Unknown => None,
        }
    }
}

const PT_INTERP: u32 = 3;
const PT_NOTE: u32 = 4;
/// Number of the processor in the ELF header (e_machine), as far as this is built for one.
const MACHINE: u16 = if cfg!(target_arch = "x86_64") {
    62
} else if cfg!(target_arch = "aarch64") {
    183
} else if cfg!(target_arch = "riscv64") {
    243
} else {
    0
};

fn number<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..at.checked_add(N)?)?.first_chunk().copied()
}

fn half(bytes: &[u8], at: usize) -> Option<u16> {
    number(bytes, at).map(u16::from_le_bytes)
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    number(bytes, at).map(u32::from_le_bytes)
}

/// An offset or size, in this machine's words.
fn size(bytes: &[u8], at: usize) -> Option<usize> {
    number(bytes, at).map(u64::from_le_bytes).and_then(|size| usize::try_from(size).ok())
}

/// What the file with this head is.
pub fn inspect(head: &[u8]) -> Kind<'_> {
    if let Some(rest) = head.strip_prefix(b"#!") {
        let line = rest.split(|byte| *byte == b'\n').next().unwrap_or_default();
        return Kind::Script(line.trim_ascii());
    }
    if !head.starts_with(b"\x7fELF") {
        return Kind::Unknown;
    }
    // Class 2: 64 bits; data 1: little-endian.
    if head.get(4..6) != Some(&[2, 1]) || half(head, 18) != Some(MACHINE) {
        return Kind::OtherMachine;
    }
    segments(head).unwrap_or(Kind::Unknown)
}

fn segments(head: &[u8]) -> Option<Kind<'_>> {
    let table = size(head, 32)?;
    let (entry, count) = (usize::from(half(head, 54)?), usize::from(half(head, 56)?));
    let (mut interpreter, mut go) = (None, false);
    for index in 0..count {
        let at = table.checked_add(index.checked_mul(entry)?)?;
        let content = || {
            let (offset, length) = (size(head, at.checked_add(8)?)?, size(head, at + 32)?);
            head.get(offset..)?.get(..length.min(head.len().saturating_sub(offset)))
        };
        match word(head, at)? {
            PT_INTERP => interpreter = Some(content()),
            PT_NOTE => go |= content().is_some_and(has_go_note),
            _ => {}
        }
    }
    Some(match interpreter {
        _ if go => Kind::Go,
        None => Kind::Static,
        Some(Some(path)) if contains(path, b"musl") => Kind::OtherLibc,
        Some(_) => Kind::Dynamic,
    })
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

/// Notes are name length, content length, type, name, content, the last two padded to 4 bytes.
fn has_go_note(mut notes: &[u8]) -> bool {
    while let (Some(name), Some(content)) = (word(notes, 0), word(notes, 4)) {
        if notes.get(12..16) == Some(b"Go\0\0") && name == 4 {
            return true;
        }
        let padded = |length: u32| (length as usize).div_ceil(4) * 4;
        let Some(rest) = notes.get(12 + padded(name) + padded(content)..) else { return false };
        notes = rest;
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str) -> Vec<u8> {
        let mut head = std::fs::read(path).unwrap();
        head.truncate(HEAD);
        head
    }

    /// A 64-bit program with these segments: type and content.
    fn program(parts: &[(u32, &[u8])]) -> Vec<u8> {
        let mut head = vec![0; 64];
        head[..6].copy_from_slice(b"\x7fELF\x02\x01");
        head[16] = 2;
        head[18..20].copy_from_slice(&MACHINE.to_le_bytes());
        head[32] = 64;
        head[54] = 56;
        head[56] = u8::try_from(parts.len()).unwrap();
        let mut offset = 64 + 56 * parts.len();
        for (kind, content) in parts {
            let mut entry = [0; 56];
            entry[..4].copy_from_slice(&kind.to_le_bytes());
            entry[8..16].copy_from_slice(&(offset as u64).to_le_bytes());
            entry[32..40].copy_from_slice(&(content.len() as u64).to_le_bytes());
            head.extend_from_slice(&entry);
            offset += content.len();
        }
        for (_, content) in parts {
            head.extend_from_slice(content);
        }
        head
    }

    #[test]
    fn programs_of_this_machine_are_dynamic() {
        assert_eq!(inspect(&file("/bin/sh")), Kind::Dynamic);
        let own = std::env::current_exe().unwrap();
        assert_eq!(inspect(&file(own.to_str().unwrap())), Kind::Dynamic);
    }

    #[test]
    fn made_up_programs() {
        let note = b"\x04\0\0\0\x03\0\0\0\x04\0\0\0Go\0\0abc\0";
        let other = b"\x04\0\0\0\x02\0\0\0\x01\0\0\0GNU\0ab\0\0";
        let interpreter: &[u8] = b"/lib64/ld-linux-x86-64.so.2\0";
        assert_eq!(inspect(&program(&[(PT_INTERP, interpreter)])), Kind::Dynamic);
        assert_eq!(inspect(&program(&[(1, b"code")])), Kind::Static);
        assert_eq!(inspect(&program(&[(2, b"dynamic")])), Kind::Static);
        let notes = [other.as_slice(), note].concat();
        assert_eq!(inspect(&program(&[(PT_INTERP, interpreter), (PT_NOTE, &notes)])), Kind::Go);
        assert_eq!(inspect(&program(&[(PT_NOTE, note)])), Kind::Go);
        let musl = b"/lib/ld-musl-x86_64.so.1\0";
        assert_eq!(inspect(&program(&[(PT_INTERP, musl)])), Kind::OtherLibc);
        let mut other = program(&[]);
        other[4] = 1;
        assert_eq!(inspect(&other), Kind::OtherMachine);
        assert_eq!(inspect(b"#! /bin/sh -e\nexit"), Kind::Script(b"/bin/sh -e"));
        assert_eq!(inspect(b"echo"), Kind::Unknown);
    }

    #[test]
    fn a_cut_head_is_no_panic() {
        let whole = program(&[(PT_INTERP, b"/lib64/ld"), (PT_NOTE, &[0xff; 40])]);
        for length in 0..whole.len() {
            let _ = inspect(&whole[..length]);
        }
        let mut far = whole.clone();
        far[32..40].fill(0xff);
        assert_eq!(inspect(&far), Kind::Unknown);
    }
}
