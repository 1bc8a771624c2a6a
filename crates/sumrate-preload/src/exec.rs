//! Programs that a program starts: it is said of those that the library cannot reach.
#![allow(unsafe_code)] // runs between vfork and exec: system calls and the stack, nothing else

use std::ffi::CStr;

use libc::{c_char, c_int};

use crate::config::Config;
use crate::elf::{self, inspect};

/// Longest path that is looked at.
const PATH_MAX: usize = libc::PATH_MAX as usize;

/// Says it if the library cannot reach the program, and gives the error with which its start is to
/// fail, if it is to. With `search`, a name without `/` is looked for in PATH.
///
/// # Safety
/// `program` is null or a C string.
pub(crate) unsafe fn check(config: &Config, program: *const c_char, search: bool) -> Option<c_int> {
    if program.is_null() {
        return None;
    }
    // SAFETY: the caller's promise.
    let program = unsafe { CStr::from_ptr(program) };
    if !search || program.to_bytes().contains(&b'/') {
        return check_file(config, program);
    }
    // SAFETY: getenv gives null or a C string, which is used before anything could change it.
    let path = unsafe {
        let path = libc::getenv(c"PATH".as_ptr());
        if path.is_null() { c"/bin:/usr/bin" } else { CStr::from_ptr(path) }
    };
    for directory in path.to_bytes().split(|byte| *byte == b':') {
        let mut place = [0_u8; PATH_MAX];
        let parts = [directory, if directory.is_empty() { b"" } else { b"/" }, program.to_bytes()];
        let bytes = parts.iter().copied().flatten();
        // One byte stays zero.
        for (to, from) in place[..PATH_MAX - 1].iter_mut().zip(bytes) {
            *to = *from;
        }
        let Ok(place) = CStr::from_bytes_until_nul(&place) else { continue };
        // SAFETY: a C string.
        if unsafe { libc::access(place.as_ptr(), libc::X_OK) } == 0 {
            return check_file(config, place);
        }
    }
    None
}

fn check_file(config: &Config, program: &CStr) -> Option<c_int> {
    let before = crate::original::errno();
    let mut head = [0; elf::HEAD];
    let obstacle = read_head(program, &mut head).and_then(|head| inspect(head).obstacle());
    crate::original::set_errno(before);
    let obstacle = obstacle?;
    let end: &[u8] = if config.strict {
        b": not started, as --strict says (use --redirect or --tun of `sumrate up`)\n"
    } else {
        b": its connections do not go through Sumrate (use --redirect or --tun of `sumrate up`)\n"
    };
    for part in [b"sumrate: ", program.to_bytes(), b" ", obstacle.as_bytes(), end] {
        // SAFETY: the slice is readable; standard error may be closed.
        let _ = unsafe { libc::write(2, part.as_ptr().cast(), part.len()) };
    }
    crate::original::set_errno(before);
    config.strict.then_some(libc::EACCES)
}

fn read_head<'a>(program: &CStr, head: &'a mut [u8]) -> Option<&'a [u8]> {
    // SAFETY: a C string and a writable buffer; the descriptor is closed at once.
    let count = unsafe {
        let file = libc::open(program.as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC);
        if file < 0 {
            return None;
        }
        let count = libc::read(file, head.as_mut_ptr().cast(), head.len());
        libc::close(file);
        count
    };
    head.get(..usize::try_from(count).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(strict: bool) -> Config {
        let (proxy, auth) = ("127.0.0.1:1".parse().unwrap(), None);
        Config { proxy, auth, direct: Vec::new(), names_at_exit: true, names: None, strict }
    }

    #[test]
    fn only_a_strict_one_keeps_programs_from_starting() {
        let folder = std::env::temp_dir().join(format!("sumrate-exec-{}", std::process::id()));
        std::fs::write(&folder, b"\x7fELF\x01\x01").unwrap();
        let path = std::ffi::CString::new(folder.to_str().unwrap()).unwrap();
        // SAFETY: C strings and null.
        unsafe {
            assert_eq!(check(&config(false), path.as_ptr(), false), None);
            assert_eq!(check(&config(true), path.as_ptr(), true), Some(libc::EACCES));
            assert_eq!(check(&config(true), c"sh".as_ptr(), true), None);
            assert_eq!(check(&config(true), c"/bin/sh".as_ptr(), false), None);
            assert_eq!(check(&config(true), c"/nonexistent".as_ptr(), false), None);
            assert_eq!(check(&config(true), std::ptr::null(), false), None);
        }
        std::fs::remove_file(&folder).unwrap();
    }
}
