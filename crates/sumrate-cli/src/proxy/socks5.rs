//! SOCKS5 (RFC 1928) with user name and password (RFC 1929), the server's part. The messages are
//! parsed from what has arrived so far; nothing here reads a socket except [`handshake`].
//!
//! Own code and not a crate: the one at hand writes passwords into its debug log and drops the
//! connection without the reply that an unknown command should get.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use super::passwords::{PasswordCheck, Verdict};
use crate::service::{Datagram, FailureCode};

const VERSION: u8 = 5;
const AUTH_VERSION: u8 = 1;
const METHOD_NONE: u8 = 0;
const METHOD_PASSWORD: u8 = 2;
const METHOD_REFUSED: u8 = 0xff;
const COMMAND_CONNECT: u8 = 1;
const COMMAND_ASSOCIATE: u8 = 3;

/// Reply codes of RFC 1928 §6.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Reply {
    Succeeded = 0,
    GeneralFailure = 1,
    NotAllowed = 2,
    NetworkUnreachable = 3,
    HostUnreachable = 4,
    Refused = 5,
    TtlExpired = 6,
    CommandNotSupported = 7,
    AddressTypeNotSupported = 8,
}

impl From<FailureCode> for Reply {
    fn from(code: FailureCode) -> Self {
        match code {
            FailureCode::NotAllowed => Self::NotAllowed,
            FailureCode::NetworkUnreachable => Self::NetworkUnreachable,
            FailureCode::HostUnreachable | FailureCode::NameFailure => Self::HostUnreachable,
            FailureCode::Refused => Self::Refused,
            FailureCode::TimedOut => Self::TtlExpired,
            FailureCode::Unsupported => Self::CommandNotSupported,
            FailureCode::General | FailureCode::BadRequest | FailureCode::Busy => {
                Self::GeneralFailure
            }
        }
    }
}

/// Where the client wants to go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) host: String,
    pub(crate) port: u16,
}

/// What a client may ask for (RFC 1928 §4).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Command {
    /// A connection to the target.
    Connect,
    /// A relay for datagrams; the target is where the client will send them from, or zeros.
    UdpAssociate,
}

/// What a client asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) command: Command,
    pub(crate) target: Target,
}

/// Why a SOCKS handshake ended.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SocksError {
    #[error("the client's connection failed: {0}")]
    Io(#[from] io::Error),
    #[error("the client speaks version {0}, not SOCKS5")]
    Version(u8),
    #[error("the client offers no authentication method that is accepted here")]
    NoMethod,
    #[error("wrong user name or password")]
    WrongPassword,
    #[error("too many wrong passwords from the client's address")]
    TooManyPasswords,
    #[error("command {0} is not supported, only CONNECT and UDP ASSOCIATE")]
    Command(u8),
    #[error("address type {0} does not exist")]
    AddressType(u8),
    #[error("the domain name is empty or no text")]
    Domain,
}

/// The methods that a client offers.
fn parse_greeting(bytes: &[u8]) -> Result<Option<(&[u8], usize)>, SocksError> {
    match *bytes {
        [] => Ok(None),
        [VERSION] => Ok(None),
        [VERSION, count, ref rest @ ..] => {
            let count = usize::from(count);
            Ok(rest.get(..count).map(|methods| (methods, 2 + count)))
        }
        [other, ..] => Err(SocksError::Version(other)),
    }
}

/// User, password and the message's length.
type Credentials<'a> = (&'a [u8], &'a [u8], usize);

fn parse_credentials(bytes: &[u8]) -> Result<Option<Credentials<'_>>, SocksError> {
    match bytes.first() {
        None => return Ok(None),
        Some(&AUTH_VERSION) => {}
        Some(&other) => return Err(SocksError::Version(other)),
    }
    let Some((user, rest)) = counted(&bytes[1..]) else { return Ok(None) };
    let Some((password, _)) = counted(rest) else { return Ok(None) };
    Ok(Some((user, password, 3 + user.len() + password.len())))
}

fn counted(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (&count, rest) = bytes.split_first()?;
    rest.split_at_checked(usize::from(count))
}

/// The request and its length.
fn parse_request(bytes: &[u8]) -> Result<Option<(Request, usize)>, SocksError> {
    if let Some(&version) = bytes.first()
        && version != VERSION
    {
        return Err(SocksError::Version(version));
    }
    let Some(&[_, command, _, address_type]) = bytes.first_chunk::<4>() else { return Ok(None) };
    let command = match command {
        COMMAND_CONNECT => Command::Connect,
        COMMAND_ASSOCIATE => Command::UdpAssociate,
        other => return Err(SocksError::Command(other)),
    };
    let body = &bytes[4..];
    let parsed = match address_type {
        1 => body.first_chunk::<4>().map(|v4| (Ipv4Addr::from(*v4).to_string(), 4)),
        4 => body.first_chunk::<16>().map(|v6| (Ipv6Addr::from(*v6).to_string(), 16)),
        3 => match counted(body) {
            Some((name, _)) => Some((domain(name)?, 1 + name.len())),
            None => None,
        },
        other => return Err(SocksError::AddressType(other)),
    };
    let Some((host, length)) = parsed else { return Ok(None) };
    let Some(port) = body.get(length..).and_then(|rest| rest.first_chunk::<2>()) else {
        return Ok(None);
    };
    let target = Target { host, port: u16::from_be_bytes(*port) };
    Ok(Some((Request { command, target }, 4 + length + 2)))
}

fn domain(name: &[u8]) -> Result<String, SocksError> {
    match std::str::from_utf8(name) {
        Ok(text) if !text.is_empty() => Ok(text.to_owned()),
        _ => Err(SocksError::Domain),
    }
}

/// Goes through greeting, authentication and request. What the client sent beyond is left in
/// `buffer`.
pub(crate) async fn handshake<C: AsyncRead + AsyncWrite + Unpin>(
    client: &mut C,
    auth: Option<&(impl PasswordCheck + ?Sized)>,
    buffer: &mut Vec<u8>,
) -> Result<Request, SocksError> {
    let wanted = if auth.is_some() { METHOD_PASSWORD } else { METHOD_NONE };
    let offered = loop {
        if let Some((methods, length)) = parse_greeting(buffer)? {
            let offered = methods.contains(&wanted);
            buffer.drain(..length);
            break offered;
        }
        read_more(client, buffer).await?;
    };
    if !offered {
        client.write_all(&[VERSION, METHOD_REFUSED]).await?;
        return Err(SocksError::NoMethod);
    }
    client.write_all(&[VERSION, wanted]).await?;
    if let Some(auth) = auth {
        check_password(client, auth, buffer).await?;
    }
    loop {
        match parse_request(buffer) {
            Ok(Some((request, length))) => {
                buffer.drain(..length);
                return Ok(request);
            }
            Ok(None) => read_more(client, buffer).await?,
            Err(error) => {
                reply(client, request_error_reply(&error)).await?;
                return Err(error);
            }
        }
    }
}

async fn check_password<C: AsyncRead + AsyncWrite + Unpin>(
    client: &mut C,
    auth: &(impl PasswordCheck + ?Sized),
    buffer: &mut Vec<u8>,
) -> Result<(), SocksError> {
    let verdict = loop {
        if let Some((user, password, length)) = parse_credentials(buffer)? {
            let verdict = auth.check(user, password);
            buffer.drain(..length);
            break verdict;
        }
        read_more(client, buffer).await?;
    };
    client.write_all(&[AUTH_VERSION, u8::from(verdict != Verdict::Right)]).await?;
    match verdict {
        Verdict::Right => Ok(()),
        Verdict::Wrong => Err(SocksError::WrongPassword),
        Verdict::Unchecked => Err(SocksError::TooManyPasswords),
    }
}

fn request_error_reply(error: &SocksError) -> Reply {
    match error {
        SocksError::Command(_) => Reply::CommandNotSupported,
        SocksError::AddressType(_) => Reply::AddressTypeNotSupported,
        _ => Reply::GeneralFailure,
    }
}

/// Sends a reply. The bound address is not known at this end and sent as zero, which clients ignore
/// for CONNECT.
pub(crate) async fn reply<C: AsyncWrite + Unpin>(client: &mut C, reply: Reply) -> io::Result<()> {
    client.write_all(&[VERSION, reply as u8, 0, 1, 0, 0, 0, 0, 0, 0]).await?;
    client.flush().await
}

/// Says that datagrams may be sent to `bound` (RFC 1928 §6 and §7).
pub(crate) async fn bound<C: AsyncWrite + Unpin>(
    client: &mut C,
    bound: SocketAddr,
) -> io::Result<()> {
    let mut message = vec![VERSION, Reply::Succeeded as u8, 0];
    message.extend(Datagram::encode(bound, &[]));
    client.write_all(&message).await?;
    client.flush().await
}

/// A message has at most 513 bytes, so what is in the buffer stays small: a client that sends its
/// data early is read on later.
async fn read_more<C: AsyncRead + Unpin>(client: &mut C, buffer: &mut Vec<u8>) -> io::Result<()> {
    let mut chunk = [0; 1024];
    match client.read(&mut chunk).await? {
        0 => Err(io::ErrorKind::UnexpectedEof.into()),
        count => {
            buffer.extend_from_slice(&chunk[..count]);
            Ok(())
        }
    }
}

#[cfg(test)]
#[path = "socks5_tests.rs"]
mod tests;
