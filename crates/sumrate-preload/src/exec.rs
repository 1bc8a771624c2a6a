//! Programs that a program starts: it is said of those that the library cannot reach.
#![allow(unsafe_code)] // runs between vfork and exec: system calls and the stack, nothing else

use std::ffi::CStr;

use libc::{c_char, c_int};

use crate::config::{Config, LIBRARY, VARIABLE};
use crate::elf::{self, inspect};
use crate::notice;
use crate::original::{Strings, errno, set_errno};

/// Why a program that the loader starts is out of reach all the same.
const NO_LIBRARY: &str =
    "is started without LD_PRELOAD and SUMRATE_PRELOAD, or as a user who may not read the library";
/// Longest path that is looked at.
const PATH_MAX: usize = libc::PATH_MAX as usize;

/// Says it if the library cannot reach the program, and gives the error with which its start is to
/// fail, if it is to. With `search`, a name without `/` is looked for in PATH.
///
/// # Safety
/// `program` is null or a C string, `environment` null or a list of them that ends with null.
pub(crate) unsafe fn check(
    config: &Config,
    (program, search): (*const c_char, bool),
    environment: Strings,
) -> Option<c_int> {
    if program.is_null() {
        return None;
    }
    // SAFETY: the caller's promise.
    let (program, keeps) = unsafe { (CStr::from_ptr(program), keeps_library(environment)) };
    if !search || program.to_bytes().contains(&b'/') {
        return check_file(config, program, keeps);
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
            return check_file(config, place, keeps);
        }
    }
    None
}

/// Checks that an environment has the library and its configuration.
unsafe fn keeps_library(environment: Strings) -> bool {
    let before = errno();
    let (mut library, mut told, mut next) = (false, false, environment);
    // SAFETY: the caller's promise.
    unsafe {
        while !next.is_null() && !(*next).is_null() {
            let entry = CStr::from_ptr(*next).to_bytes();
            let value = |name: &[u8]| entry.strip_prefix(name)?.strip_prefix(b"=");
            let has_library = |text: &[u8]| text.split(|byte| b" :".contains(byte)).any(is_library);
            library |= value(b"LD_PRELOAD").is_some_and(has_library);
            told |= value(VARIABLE.as_bytes()).is_some();
            next = next.add(1);
        }
    }
    set_errno(before);
    library && told
}

/// Checks that a path is the library's, and that the current user may read it. The loader ignores a
/// library that it cannot open.
fn is_library(path: &[u8]) -> bool {
    let mut place = [0_u8; PATH_MAX];
    // One byte stays zero.
    for (to, from) in place[..PATH_MAX - 1].iter_mut().zip(path) {
        *to = *from;
    }
    let is_named = path.windows(LIBRARY.len()).any(|part| part == LIBRARY.as_bytes());
    // Its owner alone may read it, and root. Capabilities that this process has kept go with exec.
    // SAFETY: a C string, and a record on this stack.
    is_named
        && unsafe {
            let mut found: libc::stat = std::mem::zeroed();
            let user = libc::geteuid();
            libc::stat(place.as_ptr().cast(), &raw mut found) == 0
                && (user == 0 || user == found.st_uid)
        }
}

fn check_file(config: &Config, program: &CStr, keeps_library: bool) -> Option<c_int> {
    let before = errno();
    let mut head = [0; elf::HEAD];
    let obstacle = if has_rights_of_its_own(program) {
        Some(elf::OTHER_RIGHTS)
    } else {
        let file = read_head(program, &mut head).and_then(|head| inspect(head).obstacle());
        file.or((!keeps_library).then_some(NO_LIBRARY))
    };
    set_errno(before);
    let obstacle = obstacle?;
    let end: &[u8] = if config.strict {
        b": not started, as --strict says (use --redirect or --tun of `sumrate up`)"
    } else {
        b": its connections do not go through Sumrate (use --redirect or --tun of `sumrate up`)"
    };
    notice::write(&[program.to_bytes(), b" ", obstacle.as_bytes(), end]);
    config.strict.then_some(libc::EACCES)
}

/// Checks for a program that gets another user, group or capabilities when it starts (execve(2)).
fn has_rights_of_its_own(program: &CStr) -> bool {
    let mut value = [0_u8; 64];
    // SAFETY: a C string, and a record and a buffer on this stack.
    unsafe {
        let mut found: libc::stat = std::mem::zeroed();
        if libc::stat(program.as_ptr(), &raw mut found) != 0 {
            return false;
        }
        let user = found.st_mode & libc::S_ISUID != 0 && found.st_uid != libc::geteuid();
        let group = found.st_mode & libc::S_ISGID != 0 && found.st_gid != libc::getegid();
        let (name, room) = (c"security.capability".as_ptr(), value.len());
        let mut capable = || {
            let place = value.as_mut_ptr().cast();
            libc::geteuid() != 0 && libc::getxattr(program.as_ptr(), name, place, room) > 0
        };
        user || group || capable()
    }
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
    use std::ffi::CString;

    fn config(strict: bool) -> Config {
        let (proxy, auth) = ("127.0.0.1:1".parse().unwrap(), None);
        Config { proxy, auth, direct: Vec::new(), names_at_exit: true, names: None, strict }
    }

    /// Checks a program that is started with these variables.
    fn start(config: &Config, program: &CStr, search: bool, variables: &[&CStr]) -> Option<c_int> {
        let mut list: Vec<_> = variables.iter().map(|text| text.as_ptr()).collect();
        list.push(std::ptr::null());
        // SAFETY: C strings that live as long as this function.
        unsafe { check(config, (program.as_ptr(), search), list.as_ptr()) }
    }

    /// Variables of a program that the library reaches.
    struct Kept {
        library: std::path::PathBuf,
        preload: CString,
    }

    impl Kept {
        fn new(test: &str) -> Self {
            let name = format!("libsumrate_preload-{test}-{}.so", std::process::id());
            let library = std::env::temp_dir().join(name);
            std::fs::write(&library, "").unwrap();
            let preload = format!("LD_PRELOAD={}:/y.so", library.display());
            Self { library, preload: CString::new(preload).unwrap() }
        }

        fn variables(&self) -> [&CStr; 2] {
            [&self.preload, c"SUMRATE_PRELOAD=1"]
        }
    }

    impl Drop for Kept {
        fn drop(&mut self) {
            let _ = std::fs::remove_file(&self.library);
        }
    }

    #[test]
    fn only_a_strict_one_keeps_programs_from_starting() {
        let folder = std::env::temp_dir().join(format!("sumrate-exec-{}", std::process::id()));
        std::fs::write(&folder, b"\x7fELF\x01\x01").unwrap();
        let path = CString::new(folder.to_str().unwrap()).unwrap();
        let kept = Kept::new("strict");
        let variables = kept.variables();
        let strict = |program: &CStr, search| start(&config(true), program, search, &variables);
        assert_eq!(start(&config(false), &path, false, &variables), None);
        assert_eq!(strict(&path, true), Some(libc::EACCES));
        assert_eq!(strict(c"sh", true), None);
        assert_eq!(strict(c"/bin/sh", false), None);
        assert_eq!(strict(c"/nonexistent", false), None);
        // SAFETY: null is allowed.
        unsafe {
            assert_eq!(check(&config(true), (std::ptr::null(), false), std::ptr::null()), None);
        }
        std::fs::remove_file(&folder).unwrap();
    }

    #[test]
    fn a_program_without_the_library_is_named() {
        let kept = Kept::new("without");
        let all = kept.variables();
        assert_eq!(start(&config(true), c"/bin/sh", false, &all), None);
        let (other, gone) =
            (c"LD_PRELOAD=/y.so", c"LD_PRELOAD=/nonexistent/libsumrate_preload-0.so");
        for variables in [&[][..], &all[..1], &all[1..], &[other, all[1]], &[gone, all[1]]] {
            let strict = start(&config(true), c"/bin/sh", false, variables);
            assert_eq!(strict, Some(libc::EACCES), "{variables:?}");
            assert_eq!(start(&config(false), c"/bin/sh", false, variables), None);
        }
        // SAFETY: null is an empty environment.
        let none = unsafe { check(&config(true), (c"/bin/sh".as_ptr(), false), std::ptr::null()) };
        assert_eq!(none, Some(libc::EACCES));
    }

    #[test]
    fn a_program_with_other_rights_is_named() {
        use std::os::unix::fs::PermissionsExt;
        let path = std::env::temp_dir().join(format!("sumrate-setuid-{}", std::process::id()));
        std::fs::copy("/bin/sh", &path).unwrap();
        let program = CString::new(path.to_str().unwrap()).unwrap();
        let set = |mode| std::fs::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
        set(0o4755);
        let kept = Kept::new("rights");
        let variables = kept.variables();
        assert_eq!(start(&config(true), &program, false, &variables), None, "of the same user");
        // SAFETY: no memory is involved.
        if unsafe { libc::geteuid() } == 0 {
            std::os::unix::fs::chown(&path, Some(65534), None).unwrap();
            set(0o4711);
            assert_eq!(start(&config(true), &program, false, &variables), Some(libc::EACCES));
        }
        std::fs::remove_file(&path).unwrap();
    }
}
