//! `getaddrinfo` and its elders, for names that the far end resolves: the C library is asked for the
//! numeric address that stands for the name, so that everything else is as it makes it.
#![allow(unsafe_code)] // C strings and lists of the program and the C library

use std::ffi::CStr;
use std::net::{IpAddr, Ipv6Addr};

use libc::{AF_INET, AF_INET6, AF_UNSPEC, addrinfo, c_char, c_int};

use crate::config::Config;
use crate::names::{self, names};
use crate::original::GetAddrInfo;

/// A numeric address as a C string.
pub(crate) struct Numeric {
    text: [u8; 48],
}

impl Numeric {
    fn new(address: IpAddr) -> Self {
        use std::io::Write;
        let mut numeric = Self { text: [0; 48] };
        // 39 characters at most; the last byte stays 0.
        let _ = write!(&mut numeric.text[..47], "{address}");
        numeric
    }

    pub(crate) fn as_ptr(&self) -> *const c_char {
        self.text.as_ptr().cast()
    }
}

/// What the program is to be given in place of an address of this name; `None` if the name is to be
/// resolved here.
///
/// # Safety
/// `name` is null or a C string.
pub(crate) unsafe fn stand_in(
    config: &Config,
    name: *const c_char,
    family: c_int,
) -> Option<Numeric> {
    if name.is_null() || !config.names_at_exit {
        return None;
    }
    // SAFETY: the caller's promise.
    let name = unsafe { CStr::from_ptr(name) }.to_bytes();
    if !is_far(name) {
        return None;
    }
    let number = names().number(name.strip_suffix(b".").unwrap_or(name))?;
    Some(Numeric::new(match family {
        AF_UNSPEC | AF_INET => names::stand_in_v4(number).into(),
        AF_INET6 => names::stand_in_v6(number).into(),
        _ => return None,
    }))
}

/// Whether the far end knows better than this machine: a name with a dot that is no number, not in
/// `.local` or `.localhost`, and not in the table of hosts.
fn is_far(name: &[u8]) -> bool {
    let Ok(text) = str::from_utf8(name) else { return false };
    let host = text.strip_suffix('.').unwrap_or(text);
    let local = ["local", "localhost"];
    let top = host.rsplit('.').next().unwrap_or_default();
    let numeric = text.contains(':')
        || text.parse::<Ipv6Addr>().is_ok()
        || top.bytes().all(|byte| byte.is_ascii_digit())
        || top.starts_with("0x");
    host.contains('.')
        && !numeric
        && !local.iter().any(|own| top.eq_ignore_ascii_case(own))
        && !is_in_hosts(host.as_bytes())
}

/// Whether `/etc/hosts` has the name. Read piece by piece: nothing is allocated.
fn is_in_hosts(name: &[u8]) -> bool {
    let mut hosts = HostsTable { name, matched: Some(0), in_comment: false, column: 0 };
    // SAFETY: a C string; the descriptor is closed below.
    let file = unsafe { libc::open(c"/etc/hosts".as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC) };
    if file < 0 {
        return false;
    }
    let mut found = false;
    let mut piece = [0_u8; 4096];
    loop {
        // SAFETY: the buffer is writable.
        let count = unsafe { libc::read(file, piece.as_mut_ptr().cast(), piece.len()) };
        let Some(read) = usize::try_from(count).ok().and_then(|count| piece.get(..count)) else {
            break;
        };
        found |= hosts.feed(read);
        if read.is_empty() || found {
            break;
        }
    }
    // SAFETY: opened above.
    unsafe { libc::close(file) };
    found || hosts.feed(b"\n")
}

/// Looks for a name in what comes (hosts(5)): address, names, comment behind `#`.
struct HostsTable<'a> {
    name: &'a [u8],
    /// How much of the word so far is the name's beginning; `None` if it is another word.
    matched: Option<usize>,
    in_comment: bool,
    /// Words before this one in the line.
    column: usize,
}

impl HostsTable<'_> {
    fn feed(&mut self, bytes: &[u8]) -> bool {
        bytes.iter().any(|byte| self.step(*byte))
    }

    fn step(&mut self, byte: u8) -> bool {
        if !byte.is_ascii_whitespace() && byte != b'#' {
            let next = self.matched.filter(|at| {
                self.name.get(*at).is_some_and(|wanted| wanted.eq_ignore_ascii_case(&byte))
            });
            self.matched = next.map(|at| at + 1);
            return false;
        }
        let whole = self.matched == Some(self.name.len());
        let found = whole && self.column > 0 && !self.in_comment;
        self.column += usize::from(self.matched != Some(0));
        self.matched = Some(0);
        self.in_comment |= byte == b'#';
        if byte == b'\n' {
            (self.column, self.in_comment) = (0, false);
        }
        found
    }
}

/// `getaddrinfo` for a stand-in. What depends on this machine's own addresses is left out of the hints,
/// and the canonical name is the one that was asked for.
///
/// # Safety
/// As for `getaddrinfo(3)`.
pub(crate) unsafe fn getaddrinfo(
    original: GetAddrInfo,
    (name, numeric): (*const c_char, &Numeric),
    service: *const c_char,
    hints: *const addrinfo,
    result: *mut *mut addrinfo,
) -> c_int {
    // SAFETY: hints is null or points to hints; all zero are hints too.
    let mut own: addrinfo =
        unsafe { if hints.is_null() { std::mem::zeroed() } else { hints.read() } };
    own.ai_flags &= !libc::AI_ADDRCONFIG;
    // SAFETY: the caller's promise.
    let outcome = unsafe { original(numeric.as_ptr(), service, &raw const own, result) };
    if outcome == 0 && own.ai_flags & libc::AI_CANONNAME != 0 {
        // SAFETY: the list is the C library's; it frees the name with `free`.
        unsafe {
            let first = *result;
            if !first.is_null() && !(*first).ai_canonname.is_null() {
                let asked = libc::strdup(name);
                if !asked.is_null() {
                    libc::free((*first).ai_canonname.cast());
                    (*first).ai_canonname = asked;
                }
            }
        }
    }
    outcome
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::CString;

    fn config(names_at_exit: bool) -> Config {
        let (proxy, auth) = ("127.0.0.1:1".parse().unwrap(), None);
        Config { proxy, auth, direct: Vec::new(), names_at_exit, names: None, strict: false }
    }

    fn shown(name: &str, family: c_int) -> Option<String> {
        let name = CString::new(name).unwrap();
        // SAFETY: a C string.
        let numeric = unsafe { stand_in(&config(true), name.as_ptr(), family) }?;
        // SAFETY: ends with a zero byte.
        Some(unsafe { CStr::from_ptr(numeric.as_ptr()) }.to_str().unwrap().to_owned())
    }

    #[test]
    fn far_names_get_numbers_and_near_ones_none() {
        let first = shown("one.example.org", AF_UNSPEC).unwrap();
        assert!(first.starts_with("198.18."), "{first}");
        assert_eq!(shown("one.example.org.", AF_INET), Some(first));
        assert!(shown("one.example.org", AF_INET6).unwrap().starts_with("2001:2::"));
        let near = ["localhost", "x.localhost", "printer.local", "machine", "1.2.3.4", "::1"];
        for near in [&near[..], &["127.1", "0x7f.1", "fe80::1%lo", ""]].concat() {
            assert_eq!(shown(near, AF_UNSPEC), None, "{near}");
        }
        assert_eq!(shown("one.example.org", libc::AF_UNIX), None);
        // SAFETY: null and a C string.
        unsafe {
            assert!(stand_in(&config(true), std::ptr::null(), AF_UNSPEC).is_none());
            assert!(stand_in(&config(false), c"a.example".as_ptr(), AF_UNSPEC).is_none());
        }
    }

    #[test]
    fn the_table_of_hosts() {
        let has = |name: &str| {
            let name = name.as_bytes();
            let mut table = HostsTable { name, matched: Some(0), in_comment: false, column: 0 };
            table.feed(b"127.0.0.1 a.example\tB.example # c.example\n#d.example\n1.2.3.4 e.example")
                || table.feed(b"\n")
        };
        for name in ["a.example", "b.example", "e.example"] {
            assert!(has(name), "{name}");
        }
        for name in ["c.example", "d.example", "127.0.0.1", "a.exampl", "a.example.org", "1.2.3.4"]
        {
            assert!(!has(name), "{name}");
        }
    }

    #[test]
    fn the_c_librarys_list_is_given_on() {
        let name = c"two.example.org";
        // SAFETY: C strings, hints and the result lie on this stack; the list is freed once.
        unsafe {
            let numeric = stand_in(&config(true), name.as_ptr(), AF_UNSPEC).unwrap();
            let mut hints: addrinfo = std::mem::zeroed();
            hints.ai_flags = libc::AI_CANONNAME | libc::AI_ADDRCONFIG;
            hints.ai_socktype = libc::SOCK_STREAM;
            let (mut list, service) = (std::ptr::null_mut(), c"443".as_ptr());
            let names = (name.as_ptr(), &numeric);
            assert_eq!(
                getaddrinfo(libc::getaddrinfo, names, service, &raw const hints, &raw mut list),
                0
            );
            assert_eq!(CStr::from_ptr((*list).ai_canonname), name);
            let raw =
                crate::address::RawAddress::read((*list).ai_addr, (*list).ai_addrlen).unwrap();
            assert_eq!(raw.socket_address().port(), 443);
            assert!(names::number_of(raw.socket_address().ip()).is_some());
            libc::freeaddrinfo(list);
        }
    }
}
