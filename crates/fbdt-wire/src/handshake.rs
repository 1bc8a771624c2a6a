//! The first message of each end on a new subflow, inside TLS.
//!
//! The proofs are computed by the driver, which knows the TLS connection; the
//! bytes are laid out here. `docs/wire.md` lists what each proof covers.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use fbdt_units::PathId;

use crate::cursor::Cursor;
use crate::limits::Limits;
use crate::plain_text::is_hidden;
use crate::{MESSAGE_VERSION, VERSION, WireError};

/// Longest handshake message, in bytes, header included.
pub const MAX_LEN: usize = 512;
/// Longest name of a path, in bytes.
pub const MAX_PATH_NAME: usize = 32;
/// Longest reason of a refusal, in bytes.
pub const MAX_REASON: usize = 504;

const HELLO: u8 = 0x41;
const JOIN: u8 = 0x42;
const WELCOME: u8 = 0x43;
const REFUSED: u8 = 0x44;

/// Names a session on all its subflows.
pub type SessionId = [u8; 16];
/// An HMAC-SHA256 value.
pub type Proof = [u8; 32];

/// Opens a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hello {
    /// Wire version that the client speaks.
    pub version: u16,
    /// Which credential the proof is made with.
    pub credential: [u8; 8],
    /// The client's number for this path.
    pub path: PathId,
    /// The client's name for this path, at most 32 bytes.
    pub path_name: String,
    /// What the client is willing to hold.
    pub limits: Limits,
    /// Shows that the client has the credential's secret.
    pub proof: Proof,
}

/// Adds a subflow to a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Join {
    /// The session, from its [`Welcome`].
    pub session: SessionId,
    /// The client's number for this path.
    pub path: PathId,
    /// The client's name for this path, at most 32 bytes.
    pub path_name: String,
    /// Shows that the sender has the session's key.
    pub proof: Proof,
}

/// The server's consent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Welcome {
    /// The session.
    pub session: SessionId,
    /// What the server is willing to hold.
    pub limits: Limits,
    /// Shows that the server knows the credential or session.
    pub proof: Proof,
}

/// Why a server refuses a subflow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefuseCode {
    /// The wire version is not spoken here.
    Version,
    /// Unknown credential, unknown session or wrong proof.
    Authentication,
    /// A limit of the server or the credential is reached.
    Busy,
    /// A field holds what it must not.
    Malformed,
    /// A code that this version does not know; the reason says more.
    Other(u8),
}

impl RefuseCode {
    const KNOWN: [(Self, u8); 4] =
        [(Self::Version, 1), (Self::Authentication, 2), (Self::Busy, 3), (Self::Malformed, 4)];

    fn value(self) -> u8 {
        let known = Self::KNOWN.iter().find(|(code, _)| *code == self);
        match (self, known) {
            (Self::Other(value), _) => value,
            (_, found) => found.map_or(0, |(_, value)| *value),
        }
    }

    fn of_value(value: u8) -> Self {
        let known = Self::KNOWN.iter().find(|(_, known)| *known == value);
        known.map_or(Self::Other(value), |(code, _)| *code)
    }
}

/// The server's refusal; it closes the connection behind it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// Why, as a code.
    pub code: RefuseCode,
    /// Why, in words.
    pub reason: String,
}

/// Any message of the handshake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HandshakeMessage {
    /// Client: a new session.
    Hello(Hello),
    /// Client: one more subflow.
    Join(Join),
    /// Server: accepted.
    Welcome(Welcome),
    /// Server: refused.
    Refused(Refused),
}

/// The bytes of `limits` on the wire; proofs cover them.
#[must_use]
pub fn limits_bytes(limits: &Limits) -> [u8; 24] {
    let mut out = [0; 24];
    out[..4].copy_from_slice(&limits.max_frame.to_be_bytes());
    out[4..12].copy_from_slice(&limits.stream_window.to_be_bytes());
    out[12..20].copy_from_slice(&limits.session_window.to_be_bytes());
    out[20..].copy_from_slice(&limits.max_streams.to_be_bytes());
    out
}

impl HandshakeMessage {
    /// Appends type (1 byte), length of the body (2 bytes) and body to `out`.
    /// Text that is too long is cut.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend_from_slice(&[0, 0, 0]);
        out[start] = match self {
            Self::Hello(hello) => {
                out.extend_from_slice(&hello.version.to_be_bytes());
                out.extend_from_slice(&hello.credential);
                out.push(hello.path.0);
                out.extend_from_slice(&limits_bytes(&hello.limits));
                out.extend_from_slice(&hello.proof);
                out.extend_from_slice(cut(&hello.path_name, MAX_PATH_NAME));
                HELLO
            }
            Self::Join(join) => {
                out.extend_from_slice(&join.session);
                out.push(join.path.0);
                out.extend_from_slice(&join.proof);
                out.extend_from_slice(cut(&join.path_name, MAX_PATH_NAME));
                JOIN
            }
            Self::Welcome(welcome) => {
                out.extend_from_slice(&welcome.session);
                out.extend_from_slice(&limits_bytes(&welcome.limits));
                out.extend_from_slice(&welcome.proof);
                WELCOME
            }
            Self::Refused(refused) => {
                out.push(refused.code.value());
                out.extend_from_slice(cut(&refused.reason, MAX_REASON));
                REFUSED
            }
        };
        let length = (out.len() - start - 3) as u16;
        out[start + 1..start + 3].copy_from_slice(&length.to_be_bytes());
    }

    /// Whether this type of message is what a client begins with.
    #[must_use]
    pub fn is_request(kind: u8) -> bool {
        matches!(kind, HELLO | JOIN)
    }

    /// Reads the message at the start of `bytes`, with the bytes that it
    /// took; `None` if more are needed.
    ///
    /// # Errors
    /// What is not a handshake message, as early as it shows.
    pub fn decode(bytes: &[u8]) -> Result<Option<(Self, usize)>, WireError> {
        let Some(&kind) = bytes.first() else {
            return Ok(None);
        };
        if !(HELLO..=REFUSED).contains(&kind) {
            return Err(WireError::Type(kind));
        }
        let Some((&[_, high, low], rest)) = bytes.split_first_chunk::<3>() else {
            return Ok(None);
        };
        let length = u16::from_be_bytes([high, low]);
        if usize::from(length) + 3 > MAX_LEN {
            return Err(WireError::Length { kind, length: u32::from(length) });
        }
        let Some(body) = rest.get(..usize::from(length)) else {
            return Ok(None);
        };
        let message = Self::decode_body(kind, body)?;
        Ok(Some((message, 3 + usize::from(length))))
    }

    fn decode_body(kind: u8, body: &[u8]) -> Result<Self, WireError> {
        let mut cursor = Cursor::new(kind, body);
        let message = match kind {
            HELLO => Self::Hello(Hello {
                version: version(&mut cursor)?,
                credential: cursor.array()?,
                path: PathId(cursor.u8()?),
                limits: limits(&mut cursor)?,
                proof: cursor.array()?,
                path_name: text(&mut cursor, MAX_PATH_NAME, "path name")?,
            }),
            JOIN => Self::Join(Join {
                session: cursor.array()?,
                path: PathId(cursor.u8()?),
                proof: cursor.array()?,
                path_name: text(&mut cursor, MAX_PATH_NAME, "path name")?,
            }),
            WELCOME => Self::Welcome(Welcome {
                session: cursor.array()?,
                limits: limits(&mut cursor)?,
                proof: cursor.array()?,
            }),
            REFUSED => {
                let code = RefuseCode::of_value(cursor.u8()?);
                Self::Refused(Refused { code, reason: text(&mut cursor, MAX_REASON, "reason")? })
            }
            other => return Err(WireError::Type(other)),
        };
        cursor.finish()?;
        Ok(message)
    }
}

fn cut(text: &str, max: usize) -> &[u8] {
    let mut end = text.len().min(max);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text.as_bytes()[..end]
}

/// The version stands first in a Hello of every version, and says whether the rest can be read.
fn version(cursor: &mut Cursor<'_>) -> Result<u16, WireError> {
    match cursor.u16()? {
        known @ (VERSION | MESSAGE_VERSION) => Ok(known),
        other => Err(WireError::Version(other)),
    }
}

fn limits(cursor: &mut Cursor<'_>) -> Result<Limits, WireError> {
    let limits = Limits {
        max_frame: cursor.u32()?,
        stream_window: cursor.u64()?,
        session_window: cursor.u64()?,
        max_streams: cursor.u32()?,
    };
    limits.validate().map_err(|error| cursor.field_error(error.field))?;
    Ok(limits)
}

fn text(cursor: &mut Cursor<'_>, max: usize, field: &'static str) -> Result<String, WireError> {
    let bytes = cursor.rest();
    let text = core::str::from_utf8(bytes).map_err(|_| cursor.field_error(field))?;
    if bytes.len() > max || text.chars().any(is_hidden) {
        return Err(cursor.field_error(field));
    }
    Ok(text.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn samples() -> Vec<HandshakeMessage> {
        alloc::vec![
            HandshakeMessage::Hello(Hello {
                version: 1,
                credential: [7; 8],
                path: PathId(3),
                path_name: "wigig".into(),
                limits: Limits::default(),
                proof: [9; 32],
            }),
            HandshakeMessage::Join(Join {
                session: [1; 16],
                path: PathId(0),
                path_name: String::new(),
                proof: [2; 32],
            }),
            HandshakeMessage::Welcome(Welcome {
                session: [5; 16],
                limits: Limits::default(),
                proof: [6; 32],
            }),
            HandshakeMessage::Refused(Refused {
                code: RefuseCode::Busy,
                reason: "too many sessions".into(),
            }),
        ]
    }

    #[test]
    fn round_trip_and_every_prefix_waits() {
        for message in samples() {
            let mut bytes = Vec::new();
            message.encode(&mut bytes);
            for cut in 0..bytes.len() {
                assert_eq!(HandshakeMessage::decode(&bytes[..cut]), Ok(None));
            }
            bytes.push(0xaa);
            let len = bytes.len() - 1;
            assert_eq!(HandshakeMessage::decode(&bytes), Ok(Some((message, len))));
        }
    }

    #[test]
    fn refuses_length_limits_and_names_that_are_out_of_bounds() {
        assert_eq!(HandshakeMessage::decode(b"GET / HTTP/1.1"), Err(WireError::Type(b'G')));
        assert!(matches!(
            HandshakeMessage::decode(&[HELLO, 0xff, 0xff]),
            Err(WireError::Length { .. })
        ));
        let HandshakeMessage::Hello(mut hello) = samples().remove(0) else { panic!() };
        hello.limits.max_frame = 1;
        let mut bytes = Vec::new();
        HandshakeMessage::Hello(hello.clone()).encode(&mut bytes);
        assert_eq!(
            HandshakeMessage::decode(&bytes),
            Err(WireError::Field { kind: HELLO, field: "max_frame" })
        );
        hello.limits = Limits::default();
        for name in ["a\nb", "a\u{9b}b", "a\u{202e}b", "a\u{200b}b", "a\u{2028}b", "a\u{e0041}b"] {
            hello.path_name = name.into();
            bytes.clear();
            HandshakeMessage::Hello(hello.clone()).encode(&mut bytes);
            assert_eq!(
                HandshakeMessage::decode(&bytes),
                Err(WireError::Field { kind: HELLO, field: "path name" })
            );
        }
    }

    #[test]
    fn a_hello_of_another_version_is_known_by_its_version_alone() {
        for body in [&[0, 3][..], &[0, 3, 0xff, 0xff, 0xff], &[0, 0, 1], &[0x7f, 0xff]] {
            let bytes = [&[HELLO, 0, body.len() as u8][..], body].concat();
            let version = u16::from_be_bytes([body[0], body[1]]);
            assert_eq!(HandshakeMessage::decode(&bytes), Err(WireError::Version(version)));
        }
    }

    #[test]
    fn a_refusal_with_a_code_of_a_later_version_is_still_read() {
        let bytes = [REFUSED, 0, 5, 9, b'l', b'a', b't', b'e'];
        let expected = Refused { code: RefuseCode::Other(9), reason: "late".into() };
        let (message, _) = HandshakeMessage::decode(&bytes).unwrap().unwrap();
        assert_eq!(message, HandshakeMessage::Refused(expected));
        let mut again = Vec::new();
        message.encode(&mut again);
        assert_eq!(again, bytes);
    }

    #[test]
    fn a_longer_reason_than_any_that_is_written_is_not_read() {
        let written = |length| {
            let reason = "x".repeat(length);
            let mut bytes = Vec::new();
            HandshakeMessage::Refused(Refused { code: RefuseCode::Busy, reason })
                .encode(&mut bytes);
            bytes
        };
        let longest = written(MAX_REASON);
        assert_eq!(written(MAX_REASON + 1), longest, "cut");
        let (message, size) = HandshakeMessage::decode(&longest).unwrap().unwrap();
        assert_eq!(size, longest.len());
        let mut again = Vec::new();
        message.encode(&mut again);
        assert_eq!(again, longest);
        let mut longer = [&longest[..], b"x"].concat();
        let length = u16::try_from(longer.len() - 3).unwrap();
        longer[1..3].copy_from_slice(&length.to_be_bytes());
        let expected = WireError::Field { kind: REFUSED, field: "reason" };
        assert_eq!(HandshakeMessage::decode(&longer), Err(expected));
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(mut bytes in prop::collection::vec(any::<u8>(), 1..200), kind in HELLO..=REFUSED) {
            let _ = HandshakeMessage::decode(&bytes);
            bytes[0] = kind;
            if bytes.len() > 2 { bytes[1] = 0; }
            let _ = HandshakeMessage::decode(&bytes);
        }
    }
}
