//! Addresses and passwords of the local proxies.

use std::io::Read;
use std::net::SocketAddr;
use std::str::FromStr;

use fbdt::ServerAddress;
use nix::errno::Errno;

use crate::output::Exposure;

/// A server's address or name, with its port.
pub(super) fn server_address(text: &str) -> Result<ServerAddress, String> {
    text.parse().map_err(|reason| match impossible_port(text) {
        Some(port) => format!("{port} is not a port (1 to 65535)"),
        None => format!(
            "{reason}; write for example 203.0.113.9:7443, [2001:db8::9]:7443 or server.example.org:7443"
        ),
    })
}

/// An address with its port; what is not one is told `example`.
pub(super) fn address_as_in(text: &str, example: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| match impossible_port(text) {
        Some(port) => format!("{port} is not a port (1 to 65535)"),
        None => format!("`{text}` is not ADDR:PORT; write for example {example}"),
    })
}

/// The number at the end of an address, if it is too large for a port.
pub(super) fn impossible_port(text: &str) -> Option<&str> {
    let (_, port) = text.rsplit_once(':')?;
    let is_number = !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    (is_number && port.parse::<u16>().is_err()).then_some(port)
}

/// Where a proxy listens, or `off`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProxyAddress {
    /// Listen here.
    At(SocketAddr),
    /// Do not run this proxy.
    Off,
}

impl ProxyAddress {
    /// The address, if the proxy is to run.
    pub fn address(self) -> Option<SocketAddr> {
        match self {
            Self::At(address) => Some(address),
            Self::Off => None,
        }
    }
}

impl FromStr for ProxyAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text == "off" {
            return Ok(Self::Off);
        }
        address_as_in(text, "127.0.0.1:1080, or off").map(Self::At)
    }
}

/// User name and password of the local proxies.
#[derive(Clone, PartialEq, Eq)]
pub struct ProxyAuth {
    user: String,
    password: String,
}

impl std::fmt::Debug for ProxyAuth {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ProxyAuth({}:<redacted>)", self.user)
    }
}

/// Why `--socks-auth` was refused.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProxyAuthError {
    /// No colon, or a part that is empty or longer than 255 bytes.
    #[error(
        "the proxy password must be USER:PASSWORD, each 1 to 255 bytes, or @FILE that holds it"
    )]
    Malformed,
    /// Others can read the file.
    #[error(
        "mode {mode:03o} lets others read the proxy password in {path}; run `chmod 600 {path}`"
    )]
    Exposed {
        /// The file.
        path: String,
        /// Its permission bits.
        mode: u32,
    },
    /// The file is somebody else's.
    #[error(
        "the proxy password in {path} belongs to user {owner}, who could have changed it; run this as that user, or copy it to a file of your own"
    )]
    Foreign {
        /// The file.
        path: String,
        /// Whose it is.
        owner: u32,
    },
    /// The file could not be read.
    #[error("cannot read the proxy password from {path}: {errno}; check the path and its mode")]
    Unreadable {
        /// The file.
        path: String,
        /// What the system said.
        errno: Errno,
    },
}

impl FromStr for ProxyAuth {
    type Err = ProxyAuthError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if let Some(path) = text.strip_prefix('@') {
            let failed = |error: std::io::Error| ProxyAuthError::Unreadable {
                path: path.to_owned(),
                errno: Errno::from_raw(error.raw_os_error().unwrap_or(0)),
            };
            let mut file = std::fs::File::open(path).map_err(failed)?;
            let found = file.metadata().map_err(failed)?;
            match crate::output::exposure(&found) {
                None => {}
                Some(Exposure::Mode(mode)) => {
                    return Err(ProxyAuthError::Exposed { path: path.to_owned(), mode });
                }
                Some(Exposure::Owner(owner)) => {
                    return Err(ProxyAuthError::Foreign { path: path.to_owned(), owner });
                }
            }
            let mut content = String::new();
            file.read_to_string(&mut content).map_err(failed)?;
            return Self::split(content.trim_end_matches(['\r', '\n']));
        }
        Self::split(text)
    }
}

impl ProxyAuth {
    fn split(text: &str) -> Result<Self, ProxyAuthError> {
        let (user, password) = text.split_once(':').ok_or(ProxyAuthError::Malformed)?;
        let fits = |part: &str| (1..=255).contains(&part.len());
        if !fits(user) || !fits(password) {
            return Err(ProxyAuthError::Malformed);
        }
        Ok(Self { user: user.to_owned(), password: password.to_owned() })
    }

    /// User and password, for those who have to present them.
    pub fn expose(&self) -> (&str, &str) {
        (&self.user, &self.password)
    }

    /// Whether user and password are right; the time does not depend on where they differ.
    pub fn matches(&self, user: &[u8], password: &[u8]) -> bool {
        same_secret(self.user.as_bytes(), user) & same_secret(self.password.as_bytes(), password)
    }
}

/// Whether two secrets are the same; the time does not depend on where they differ.
pub(crate) fn same_secret(expected: &[u8], given: &[u8]) -> bool {
    let mut difference = expected.len() ^ given.len();
    for (index, byte) in expected.iter().enumerate() {
        difference |= usize::from(byte ^ given.get(index).copied().unwrap_or(!*byte));
    }
    difference == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn password_is_checked_whole() {
        let auth: ProxyAuth = "me:pass:word".parse().unwrap();
        assert!(auth.matches(b"me", b"pass:word"));
        assert!(!auth.matches(b"me", b"pass:wor"));
        assert!(!auth.matches(b"me", b"pass:words"));
        assert!(!auth.matches(b"m", b"pass:word"));
        assert!(!auth.matches(b"", b""));
        assert!(!format!("{auth:?}").contains("word"));
    }

    #[test]
    fn malformed_passwords_are_refused() {
        for bad in ["", "user", ":x", "x:"] {
            assert_eq!(bad.parse::<ProxyAuth>(), Err(ProxyAuthError::Malformed), "{bad}");
        }
        assert!(matches!(
            "@/nonexistent".parse::<ProxyAuth>(),
            Err(ProxyAuthError::Unreadable { .. })
        ));
    }

    #[test]
    fn a_password_that_others_can_read_is_refused() {
        use std::os::unix::fs::PermissionsExt;
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("password");
        crate::output::write_private(&path, "me:pass\n").unwrap();
        let argument = format!("@{}", path.display());
        assert!(argument.parse::<ProxyAuth>().unwrap().matches(b"me", b"pass"));
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o604)).unwrap();
        let error = argument.parse::<ProxyAuth>().unwrap_err();
        assert!(matches!(error, ProxyAuthError::Exposed { mode: 0o604, .. }), "{error}");
        if !nix::unistd::geteuid().is_root() {
            return test_skip::skipped("only root can give files away");
        }
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o600)).unwrap();
        std::os::unix::fs::chown(&path, Some(65534), None).unwrap();
        let error = argument.parse::<ProxyAuth>().unwrap_err();
        assert!(matches!(error, ProxyAuthError::Foreign { owner: 65534, .. }), "{error}");
    }

    #[test]
    fn proxy_address_may_be_off() {
        assert_eq!("off".parse(), Ok(ProxyAddress::Off));
        assert!("localhost".parse::<ProxyAddress>().is_err());
        let error = "127.0.0.1:99999".parse::<ProxyAddress>().unwrap_err();
        assert_eq!(error, "99999 is not a port (1 to 65535)");
    }
}
