//! The join link: everything a client needs, in one line of text.
//!
//! `sumrate://HOST:PORT[,HOST:PORT...]?v=1#k=FINGERPRINT&c=CREDENTIAL`. The secret parts stand
//! after `#`, which no program sends to a server. In the plaintext lab mode the query has
//! `insecure=1` and there is no `k`.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::str::FromStr;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::credential::{Credential, CredentialId};
use super::secret::{Secret, decode_base64};
use super::server_key::KeyFingerprint;

const SCHEME: &str = "sumrate://";
const MOST_SERVERS: usize = 16;
const LONGEST_LINK: usize = 4096;
/// A credential in a link has 54 characters.
const LONGEST_QUOTE: usize = 40;

/// A server address of a link: a name or an IP address, and a TCP port.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ServerAddress {
    /// DNS name or IP address, an IPv6 address without brackets.
    pub host: String,
    /// TCP port, not 0.
    pub port: u16,
}

impl ServerAddress {
    /// The address if the host is an IP address and needs no look-up.
    pub fn ip(&self) -> Option<IpAddr> {
        self.host.parse().ok()
    }
}

impl From<SocketAddr> for ServerAddress {
    fn from(address: SocketAddr) -> Self {
        Self { host: address.ip().to_string(), port: address.port() }
    }
}

impl fmt::Display for ServerAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

impl FromStr for ServerAddress {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (host, port) = match text.strip_prefix('[') {
            Some(rest) => {
                let (host, port) = rest.split_once("]:").ok_or("write it as [IPV6]:PORT")?;
                if host.parse::<Ipv6Addr>().is_err() {
                    return Err("what stands in the brackets is not an IPv6 address");
                }
                (host, port)
            }
            None => text.rsplit_once(':').ok_or("the port is missing")?,
        };
        let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
        if !text.starts_with('[') {
            if host.contains(':') {
                return Err("an IPv6 address stands in brackets: [IPV6]:PORT");
            }
            if host.is_empty() || host.len() > 253 || !host.chars().all(is_name) {
                return Err("the host is neither a name nor an IP address");
            }
        }
        match port.parse() {
            Ok(port) if port != 0 => Ok(Self { host: host.to_owned(), port }),
            _ => Err("the port is not a number from 1 to 65535"),
        }
    }
}

/// A join link: where the server is, its key's fingerprint, and the client's credential.
///
/// `Display` and `Debug` leave the credential's secret out.
#[derive(Clone, PartialEq, Eq)]
pub struct Link {
    servers: Vec<ServerAddress>,
    fingerprint: Option<KeyFingerprint>,
    credential: CredentialId,
    secret: Secret,
}

/// Which part of a join link is wrong. No message quotes a secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LinkError {
    /// It does not start with `sumrate://`.
    #[error("a join link starts with `sumrate://`; copy the whole line that the server printed")]
    Scheme,
    /// It ends after the server addresses.
    #[error("the link is cut off after the address: copy all of it, and put it in quotes")]
    CutOff,
    /// It is longer than any link.
    #[error(
        "the text is {0} bytes long, a join link has at most 4096; copy the server's line only"
    )]
    Length(usize),
    /// A server address is wrong.
    #[error("server address `{text}` of the link: {reason}")]
    Server {
        /// The address as written.
        text: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// More than 16 server addresses.
    #[error("the link has {0} server addresses, at most 16 are used; leave some out")]
    TooManyServers(usize),
    /// `v=` is missing or not 1.
    #[error(
        "the link has version `{0}`, this program knows version 1; update whichever side is older"
    )]
    Version(String),
    /// A parameter between `?` and `#` is unknown.
    #[error("the link has the unknown parameter `{0}`; update this program or remove it")]
    Parameter(String),
    /// The part after `#` is missing.
    #[error(
        "the part after `#` (key and credential) is missing; quote the link, a shell treats `#` and `&` specially"
    )]
    Fragment,
    /// `k=` is missing although the link is not for plaintext.
    #[error(
        "the server's key (`k=` after `#`) is missing; without it the server cannot be told from an impostor"
    )]
    KeyMissing,
    /// `k=` is not a SHA-256 fingerprint.
    #[error("the server's key (`k=` after `#`) is not 32 bytes of base64url; copy the link again")]
    Key,
    /// `c=` is missing.
    #[error("the credential (`c=` after `#`) is missing; quote the link, a shell splits it at `&`")]
    CredentialMissing,
    /// `c=` is not a credential.
    #[error("the credential (`c=` after `#`) is not 40 bytes of base64url; copy the link again")]
    Credential,
}

impl Link {
    /// A link for a credential; no fingerprint means the plaintext lab mode.
    pub fn new(
        servers: Vec<ServerAddress>,
        fingerprint: Option<KeyFingerprint>,
        credential: &Credential,
    ) -> Self {
        Self { servers, fingerprint, credential: credential.id, secret: credential.secret.clone() }
    }

    /// The server's addresses, most preferred first; at least one.
    pub fn servers(&self) -> &[ServerAddress] {
        &self.servers
    }

    /// The server key to pin; `None` in a link for the plaintext lab mode.
    pub fn fingerprint(&self) -> Option<KeyFingerprint> {
        self.fingerprint
    }

    /// Whether the link is for the plaintext lab mode.
    pub fn is_insecure(&self) -> bool {
        self.fingerprint.is_none()
    }

    /// Public name of the credential.
    pub fn credential_id(&self) -> CredentialId {
        self.credential
    }

    pub(crate) fn secret(&self) -> &Secret {
        &self.secret
    }

    /// The complete link. Whoever reads it can open sessions: print it only when asked to.
    pub fn to_string_with_secret(&self) -> String {
        let mut bytes = self.credential.0.to_vec();
        bytes.extend_from_slice(self.secret.expose());
        self.format(&URL_SAFE_NO_PAD.encode(bytes))
    }

    fn format(&self, credential: &str) -> String {
        let servers: Vec<String> = self.servers.iter().map(ToString::to_string).collect();
        let (insecure, key) = match self.fingerprint {
            Some(KeyFingerprint(bytes)) => ("", format!("k={}&", URL_SAFE_NO_PAD.encode(bytes))),
            None => ("&insecure=1", String::new()),
        };
        format!("{SCHEME}{}?v=1{insecure}#{key}c={credential}", servers.join(","))
    }
}

impl fmt::Display for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.format("<redacted>"))
    }
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Link({self})")
    }
}

impl FromStr for Link {
    type Err = LinkError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let text = text.trim();
        if text.len() > LONGEST_LINK {
            return Err(LinkError::Length(text.len()));
        }
        let rest = text.strip_prefix(SCHEME).ok_or(LinkError::Scheme)?;
        let (address, fragment) = match rest.split_once('#') {
            Some((address, fragment)) => (address, Some(fragment)),
            None => (rest, None),
        };
        let (servers, query) = address.split_once('?').unwrap_or((address, ""));
        let servers = parse_servers(servers)?;
        if query.is_empty() && fragment.is_none() {
            return Err(LinkError::CutOff);
        }
        let insecure = parse_query(query)?;
        let fragment = fragment.filter(|f| !f.is_empty()).ok_or(LinkError::Fragment)?;
        let (fingerprint, (credential, secret)) = parse_fragment(fragment, insecure)?;
        Ok(Self { servers, fingerprint, credential, secret })
    }
}

fn parse_servers(text: &str) -> Result<Vec<ServerAddress>, LinkError> {
    let servers: Vec<ServerAddress> = text
        .trim_end_matches('/')
        .split(',')
        .map(|text| {
            text.parse().map_err(|reason| LinkError::Server { text: quotable(text), reason })
        })
        .collect::<Result<_, _>>()?;
    if servers.len() > MOST_SERVERS {
        return Err(LinkError::TooManyServers(servers.len()));
    }
    Ok(servers)
}

/// Checks version and parameters; returns whether the link is for plaintext.
fn parse_query(query: &str) -> Result<bool, LinkError> {
    let (mut version, mut insecure) = ("", false);
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        match pair.split_once('=').unwrap_or((pair, "")) {
            ("v", value) => version = value,
            ("insecure", "1") => insecure = true,
            (name, _) => return Err(LinkError::Parameter(quotable(name))),
        }
    }
    if version == "1" { Ok(insecure) } else { Err(LinkError::Version(quotable(version))) }
}

/// What may be quoted of a malformed link. One that lost its `#` or `?` has the secret in its other
/// parts: nothing behind a character that no name, address or number has, and not much at all.
fn quotable(text: &str) -> String {
    let harmless = |c: &char| c.is_alphanumeric() || ".:[]-_ ".contains(*c);
    let quoted: String = text.chars().take_while(harmless).take(LONGEST_QUOTE).collect();
    let rest = if quoted.len() < text.len() { "..." } else { "" };
    quoted + rest
}

type FragmentParts = (Option<KeyFingerprint>, (CredentialId, Secret));

fn parse_fragment(fragment: &str, insecure: bool) -> Result<FragmentParts, LinkError> {
    let (mut key, mut credential) = (None, None);
    for pair in fragment.split('&') {
        match pair.split_once('=') {
            Some(("k", value)) => key = Some(value),
            Some(("c", value)) => credential = Some(value),
            _ => {} // what later versions add here is theirs to interpret
        }
    }
    let fingerprint = match key {
        Some(value) => Some(KeyFingerprint(decode_base64(value).ok_or(LinkError::Key)?)),
        None if insecure => None,
        None => return Err(LinkError::KeyMissing),
    };
    let bytes: [u8; 40] = decode_base64(credential.ok_or(LinkError::CredentialMissing)?)
        .ok_or(LinkError::Credential)?;
    let (mut id, mut secret) = ([0; 8], [0; Secret::LENGTH]);
    id.copy_from_slice(&bytes[..8]);
    secret.copy_from_slice(&bytes[8..]);
    // A plaintext link with a key is a contradiction: the key would not be checked.
    if insecure && fingerprint.is_some() {
        return Err(LinkError::Parameter("insecure=1".to_owned()));
    }
    Ok((fingerprint, (CredentialId(id), Secret::from_bytes(secret))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::CredentialLimits;

    fn link() -> Link {
        let credential = Credential {
            id: CredentialId([1; 8]),
            secret: Secret::from_bytes(std::array::from_fn(|at| (at as u8).wrapping_mul(29))),
            name: "a".into(),
            created: 0,
            limits: CredentialLimits::default(),
        };
        let servers = ["example.org:4433", "10.1.1.2:4433", "[fd00::1]:443"]
            .map(|text| text.parse().unwrap());
        Link::new(servers.to_vec(), Some(KeyFingerprint([9; 32])), &credential)
    }

    #[test]
    fn round_trip() {
        let text = link().to_string_with_secret();
        assert_eq!(text.parse::<Link>().unwrap(), link());
    }

    #[test]
    fn plaintext_round_trip() {
        let mut link = link();
        link.fingerprint = None;
        let text = link.to_string_with_secret();
        assert!(text.contains("?v=1&insecure=1#c="), "{text}");
        assert_eq!(text.parse::<Link>().unwrap(), link);
    }

    #[test]
    fn no_error_quotes_the_secret_whatever_one_character_became() {
        let good = link().to_string_with_secret();
        let secret = good.split_once("c=").unwrap().1;
        let mut refused = 0;
        for (at, old) in good.char_indices() {
            for new in ["", "%23", "#", "?", "&", "=", ",", " ", "/", "x", "é"] {
                let text = [&good[..at], new, &good[at + old.len_utf8()..]].concat();
                let Err(error) = text.parse::<Link>() else { continue };
                refused += 1;
                let said = format!("{error} {error:?}");
                let leaks = secret
                    .as_bytes()
                    .windows(8)
                    .any(|run| said.contains(std::str::from_utf8(run).unwrap()));
                assert!(!leaks, "{text}: {said}");
            }
        }
        assert!(refused > 500, "{refused}");
    }

    #[test]
    fn the_secret_is_not_shown() {
        let (good, shown) = (link().to_string_with_secret(), format!("{} {:?}", link(), link()));
        let secret = good.split_once("c=").unwrap().1;
        assert!(shown.contains("<redacted>") && !shown.contains(&secret[12..20]), "{shown}");
    }

    #[test]
    fn each_wrong_part_has_its_error() {
        let good = link().to_string_with_secret();
        let parse = |text: String| text.parse::<Link>().unwrap_err();
        assert_eq!(parse(good.replace("sumrate", "http")), LinkError::Scheme);
        assert_eq!(parse(good.replace("v=1", "v=2")), LinkError::Version("2".into()));
        assert_eq!(parse(good.replace("?v=1", "")), LinkError::Version(String::new()));
        assert_eq!(parse(good.replace("v=1", "v=1&x=2")), LinkError::Parameter("x".into()));
        let before = |c| good.split_once(c).unwrap().0.to_owned();
        assert_eq!(parse(before('#')), LinkError::Fragment);
        assert_eq!(parse(before('&')), LinkError::CredentialMissing);
        assert_eq!(parse(good.replace("#k=", "#q=")), LinkError::KeyMissing);
        assert_eq!(parse(good.replace("#k=", "#k=A")), LinkError::Key);
        assert_eq!(parse(good.clone() + "AAAA"), LinkError::Credential);
    }

    #[test]
    fn wrong_servers_are_named() {
        for wrong in
            ["", "host", "host:0", "host:99999", "fd00::1:443", "[x]:1", "[fd00::1]", "a b:1"]
        {
            let text = link().to_string_with_secret().replace("example.org:4433", wrong);
            let error = text.parse::<Link>().unwrap_err();
            assert!(
                matches!(&error, LinkError::Server { text, .. } if text == wrong),
                "{wrong}: {error}"
            );
        }
    }
}
