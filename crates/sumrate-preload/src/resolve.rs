//! `getaddrinfo` and its elders, for names that the far end resolves: the C library is asked for the
//! numeric address that stands for the name, so that everything else is as it makes it. A name that can
//! have no such address is not resolved at all: this machine's network never sees it.
#![allow(unsafe_code)] // C strings and lists of the program and the C library

use std::ffi::CStr;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::atomic::AtomicBool;

use libc::{AF_INET, AF_INET6, AF_UNSPEC, addrinfo, c_char, c_int};

use crate::config::Config;
use crate::names::{self, Names, names};
use crate::notice::{self, Shown};
use crate::original::GetAddrInfo;
use crate::preface::NAME_MAX;

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

/// The way in which a name is resolved.
pub(crate) enum Answer {
    /// The C library resolves it here.
    Here,
    /// The program is given this address in its place.
    StandIn(Numeric),
    /// It is resolved nowhere: an error of `getaddrinfo`.
    Nowhere(c_int),
}

impl Answer {
    /// The name or number to ask the C library for.
    pub(crate) fn ask_for(&self, name: *const c_char) -> Result<*const c_char, c_int> {
        match self {
            Self::Here => Ok(name),
            Self::StandIn(numeric) => Ok(numeric.as_ptr()),
            Self::Nowhere(error) => Err(*error),
        }
    }
}

/// Decides how a name is resolved.
///
/// # Safety
/// `name` is null or a C string.
pub(crate) unsafe fn look(config: &Config, name: *const c_char, family: c_int) -> Answer {
    if name.is_null() || !config.names_at_exit {
        return Answer::Here;
    }
    // SAFETY: the caller's promise.
    let name = unsafe { CStr::from_ptr(name) }.to_bytes();
    if !is_far(name) {
        return Answer::Here;
    }
    number(names(), without_dot(name)).map_or_else(Answer::Nowhere, |number| match family {
        AF_UNSPEC | AF_INET => Answer::StandIn(Numeric::new(names::stand_in_v4(number).into())),
        AF_INET6 => Answer::StandIn(Numeric::new(names::stand_in_v6(number).into())),
        _ => Answer::Nowhere(libc::EAI_FAMILY),
    })
}

/// The number of a far name, or the error that the program gets. Such a name is never resolved here.
fn number(table: Option<&Names>, name: &[u8]) -> Result<u32, c_int> {
    static NO_TABLE: AtomicBool = AtomicBool::new(false);
    static FULL: AtomicBool = AtomicBool::new(false);
    if name.len() > NAME_MAX {
        return Err(libc::EAI_NONAME); // no name is as long (RFC 1035 section 2.3.4)
    }
    let shown = Shown::new(name);
    let Some(table) = table else {
        let reason =
            b" is not resolved: the file with the names of this command is gone or damaged; \
                       start the command again";
        notice::write_once(&NO_TABLE, &[shown.bytes(), reason]);
        return Err(libc::EAI_FAIL);
    };
    table.number(name).ok_or_else(|| {
        let reason =
            b" and other new names are not resolved: the command has asked for 65536 names, \
                       which is the most; start it again";
        notice::write_once(&FULL, &[shown.bytes(), reason]);
        libc::EAI_FAIL
    })
}

/// The name without the dot at its end. A single label keeps it, or the far end would search for the
/// label in its own domains.
fn without_dot(name: &[u8]) -> &[u8] {
    name.strip_suffix(b".").filter(|host| host.contains(&b'.')).unwrap_or(name)
}

/// Checks for a name of the far end: it has a dot, is no address, not in `.local` or `.localhost`, and
/// not in the table of hosts.
fn is_far(name: &[u8]) -> bool {
    let host = name.strip_suffix(b".").unwrap_or(name);
    let top = host.rsplit(|byte| *byte == b'.').next().unwrap_or_default();
    let is_local = [&b"local"[..], b"localhost"].iter().any(|own| top.eq_ignore_ascii_case(own));
    name.contains(&b'.') && !is_address(name) && !is_local && !is_in_hosts(host)
}

/// Checks for an address: IPv6, perhaps with a zone, or IPv4 of one to four numbers (inet_aton(3)).
fn is_address(name: &[u8]) -> bool {
    let before_zone = name.split(|byte| *byte == b'%').next().unwrap_or_default();
    let is_v6 = str::from_utf8(before_zone).is_ok_and(|text| text.parse::<Ipv6Addr>().is_ok());
    is_v6 || is_v4(name)
}

fn is_v4(name: &[u8]) -> bool {
    let count = name.split(|byte| *byte == b'.').count();
    count <= 4
        && name.split(|byte| *byte == b'.').enumerate().all(|(index, part)| {
            let bytes = if index + 1 == count { 5 - count } else { 1 };
            number_of(part).is_some_and(|number| number < 1_u64 << (8 * bytes))
        })
}

/// A number in decimal, octal or hexadecimal notation, as in C.
fn number_of(part: &[u8]) -> Option<u64> {
    let text = str::from_utf8(part).ok().filter(|text| !text.starts_with('+'))?;
    let hexadecimal = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
    match (hexadecimal, text.strip_prefix('0')) {
        (Some(digits), _) if digits.starts_with('+') => None,
        (Some(digits), _) => u64::from_str_radix(digits, 16).ok(),
        (None, Some(digits)) if !digits.is_empty() => {
            u64::from_str_radix(digits, 8).ok().filter(|_| !digits.starts_with('+'))
        }
        (None, _) => text.parse().ok(),
    }
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

/// Looks for a name of the far end in a list for `getaddrinfo_a(3)`.
///
/// # Safety
/// As for `getaddrinfo_a(3)`.
pub(crate) unsafe fn has_far(config: &Config, list: *const *const Request, count: c_int) -> bool {
    let count = if list.is_null() { 0 } else { usize::try_from(count).unwrap_or(0) };
    (0..count).any(|index| {
        // SAFETY: the caller's promise.
        unsafe {
            let request = *list.add(index);
            !request.is_null() && !matches!(look(config, (*request).name, AF_UNSPEC), Answer::Here)
        }
    })
}

/// The beginning of `struct gaicb` (netdb.h).
#[repr(C)]
pub(crate) struct Request {
    name: *const c_char,
}

/// `getaddrinfo` for a stand-in. What depends on this machine's own addresses is left out of the hints,
/// and the canonical name is the one that was asked for.
///
/// # Safety
/// As for `getaddrinfo(3)`.
pub(crate) unsafe fn getaddrinfo(
    original: GetAddrInfo,
    (name, numeric): (*const c_char, *const c_char),
    service: *const c_char,
    hints: *const addrinfo,
    result: *mut *mut addrinfo,
) -> c_int {
    // SAFETY: hints is null or points to hints; all zero are hints too.
    let mut own: addrinfo =
        unsafe { if hints.is_null() { std::mem::zeroed() } else { hints.read() } };
    own.ai_flags &= !libc::AI_ADDRCONFIG;
    // SAFETY: the caller's promise.
    let outcome = unsafe { original(numeric, service, &raw const own, result) };
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

    /// The stand-in of a name, or the error; `None` if it is resolved here.
    fn shown(name: impl Into<Vec<u8>>, family: c_int) -> Option<Result<String, c_int>> {
        names::share_for_tests();
        let name = CString::new(name).unwrap();
        // SAFETY: a C string.
        match unsafe { look(&config(true), name.as_ptr(), family) } {
            Answer::Here => None,
            Answer::Nowhere(error) => Some(Err(error)),
            Answer::StandIn(numeric) => {
                // SAFETY: ends with a zero byte.
                let text = unsafe { CStr::from_ptr(numeric.as_ptr()) };
                Some(Ok(text.to_str().unwrap().to_owned()))
            }
        }
    }

    #[test]
    fn far_names_get_numbers_and_near_ones_none() {
        let first = shown("one.example.org", AF_UNSPEC).unwrap().unwrap();
        assert!(first.starts_with("198.1"), "{first}");
        assert_eq!(shown("one.example.org.", AF_INET), Some(Ok(first)));
        let six = shown("one.example.org", AF_INET6).unwrap().unwrap();
        assert!(six.starts_with("2001:2::"), "{six}");
        let near = ["localhost", "x.localhost", "printer.local", "machine", "1.2.3.4", "::1"];
        let numbers = ["127.1", "0x7f.1", "0177.0.0.1", "1.2.65535", "fe80::1%lo", "1", ""];
        for near in [&near[..], &numbers].concat() {
            assert_eq!(shown(near, AF_UNSPEC), None, "{near}");
        }
        // SAFETY: null and a C string.
        unsafe {
            assert!(matches!(look(&config(true), std::ptr::null(), AF_UNSPEC), Answer::Here));
            assert!(matches!(look(&config(false), c"a.example".as_ptr(), AF_UNSPEC), Answer::Here));
        }
    }

    #[test]
    fn names_that_only_look_local_are_far() {
        let odd: [&[u8]; 14] = [
            b"secret.123",
            b"secret.0x7f",
            b"1.2.3.4.5",
            b"1.2.3.256",
            b"999.1.1.1",
            b"1.2.3.08",
            b"a:b.example",
            b"a..b",
            b"b\xfccher.example",
            "b\u{fc}cher.example".as_bytes(),
            b"xn--bcher-kva.example",
            b"ai.",
            b"1.2.3.4.",
            b"+1.2.3.4",
        ];
        for name in odd {
            let found = shown(name, AF_UNSPEC);
            assert!(matches!(found, Some(Ok(_))), "{}", String::from_utf8_lossy(name));
        }
        assert_eq!((without_dot(b"ai."), without_dot(b"a.b.")), (&b"ai."[..], &b"a.b"[..]));
    }

    #[test]
    fn a_name_without_a_number_is_resolved_nowhere() {
        static FULL: Names = Names::new();
        for index in 0..names::CAPACITY {
            FULL.number(index.to_string().as_bytes()).unwrap();
        }
        assert_eq!(number(Some(&FULL), b"secret.example"), Err(libc::EAI_FAIL));
        assert!(number(Some(&FULL), b"7").is_ok(), "the old ones stay");
        assert_eq!(number(None, b"secret.example"), Err(libc::EAI_FAIL));
        let long = "x.".repeat(128);
        assert_eq!(shown(long + "x", AF_UNSPEC), Some(Err(libc::EAI_NONAME)));
        assert_eq!(shown("one.example.org", libc::AF_UNIX), Some(Err(libc::EAI_FAMILY)));
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
            names::share_for_tests();
            let Answer::StandIn(numeric) = look(&config(true), name.as_ptr(), AF_UNSPEC) else {
                panic!("it is far");
            };
            let mut hints: addrinfo = std::mem::zeroed();
            hints.ai_flags = libc::AI_CANONNAME | libc::AI_ADDRCONFIG;
            hints.ai_socktype = libc::SOCK_STREAM;
            let (mut list, service) = (std::ptr::null_mut(), c"443".as_ptr());
            let names = (name.as_ptr(), numeric.as_ptr());
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
