//! What is said to the proxy, in bytes: SOCKS5 (RFC 1928, RFC 1929), and a form of it that has no
//! answers.
//!
//! A program that connects without blocking must not be held up by the proxy's answers, and must not
//! read them either. So its sockets send [`METHOD_SILENT`], the authentication if there is one and the
//! request, all at once, and the program's own data may follow. The proxy answers nothing: the stream
//! of the target follows, or, if there is no connection, a reset.

use std::net::IpAddr;

/// The greeting's version.
pub const VERSION: u8 = 5;
/// Without authentication.
pub const METHOD_NONE: u8 = 0;
/// With user and password.
pub const METHOD_PASSWORD: u8 = 2;
/// The form without answers, of those that RFC 1928 §3 leaves to private use.
pub const METHOD_SILENT: u8 = 0xd5;
/// Longest name of a target, in bytes.
pub const NAME_MAX: usize = 255;
/// Longest preface: greeting, authentication, request.
pub const LONGEST: usize = 3 + (3 + 255 + 255) + (4 + 1 + NAME_MAX + 2);

/// Whom a connection is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target<'a> {
    /// An address and a port.
    Address(IpAddr, u16),
    /// A name of at most [`NAME_MAX`] bytes, which the far end resolves, and a port.
    Name(&'a [u8], u16),
}

/// Bytes to send, of which no more than [`LONGEST`] are used.
#[derive(Clone)]
pub struct Preface {
    bytes: [u8; LONGEST],
    length: usize,
}

impl Preface {
    /// Greeting, authentication and the request for `target`, to be sent in one piece.
    pub fn new(method: u8, auth: Option<(&[u8], &[u8])>, target: Target<'_>) -> Self {
        let mut preface = Self { bytes: [0; LONGEST], length: 0 };
        preface.push(&[VERSION, 1, method]);
        if let Some((user, password)) = auth {
            preface.push(&[1]);
            preface.push_counted(user);
            preface.push_counted(password);
        }
        preface.push(&[VERSION, 1, 0]);
        let port = match target {
            Target::Address(address, port) => {
                match address.to_canonical() {
                    IpAddr::V4(v4) => {
                        preface.push(&[1]);
                        preface.push(&v4.octets());
                    }
                    IpAddr::V6(v6) => {
                        preface.push(&[4]);
                        preface.push(&v6.octets());
                    }
                }
                port
            }
            Target::Name(name, port) => {
                preface.push(&[3]);
                preface.push_counted(name);
                port
            }
        };
        preface.push(&port.to_be_bytes());
        preface
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or_default()
    }

    fn push(&mut self, more: &[u8]) {
        for (to, from) in self.bytes.iter_mut().skip(self.length).zip(more) {
            *to = *from;
        }
        self.length = (self.length + more.len()).min(LONGEST);
    }

    fn push_counted(&mut self, more: &[u8]) {
        let count = more.len().min(255);
        self.push(&[u8::try_from(count).unwrap_or(u8::MAX)]);
        self.push(&more[..count]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefaces_are_as_the_rfc_says() {
        let to = |target| Preface::new(METHOD_NONE, None, target).bytes().to_vec();
        assert_eq!(
            to(Target::Address("192.0.2.1".parse().unwrap(), 80)),
            [5, 1, 0, 5, 1, 0, 1, 192, 0, 2, 1, 0, 80]
        );
        assert_eq!(to(Target::Name(b"a.b", 443))[3..], *b"\x05\x01\x00\x03\x03a.b\x01\xbb");
        let mapped = to(Target::Address("::ffff:192.0.2.1".parse().unwrap(), 80));
        assert_eq!(mapped[6], 1, "an IPv4-mapped address goes as IPv4");
        let auth = Some((b"u".as_slice(), b"pw".as_slice()));
        let six = Preface::new(METHOD_SILENT, auth, Target::Address("::2".parse().unwrap(), 1));
        assert_eq!(six.bytes()[..8], *b"\x05\x01\xd5\x01\x01u\x02p");
        assert_eq!(six.bytes().len(), 3 + 6 + 4 + 16 + 2);
    }

    #[test]
    fn the_longest_fits() {
        let (name, word) = ([b'n'; NAME_MAX], [b'w'; 255]);
        let preface = Preface::new(METHOD_PASSWORD, Some((&word, &word)), Target::Name(&name, 1));
        assert_eq!(preface.bytes().len(), LONGEST);
        assert_eq!(preface.bytes()[LONGEST - 2..], [0, 1]);
    }
}
