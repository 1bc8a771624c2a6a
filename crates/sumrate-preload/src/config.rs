//! What `sumrate run` tells the library, in one environment variable that children inherit.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddrV4};

/// The environment variable.
pub const VARIABLE: &str = "SUMRATE_PRELOAD";

/// How the name of the library's file begins.
pub const LIBRARY: &str = "libsumrate_preload";

/// A network that programs reach directly.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Net {
    /// An address of it.
    pub address: IpAddr,
    /// How many of the leading bits count.
    pub bits: u8,
}

impl Net {
    /// Whether an address is in the network; IPv4-mapped addresses count as IPv4.
    pub fn contains(&self, other: IpAddr) -> bool {
        match (self.address.to_canonical(), other.to_canonical()) {
            (IpAddr::V4(net), IpAddr::V4(other)) => {
                let shift = 32 - u32::from(self.bits.min(32));
                let mask = u32::MAX.checked_shl(shift).unwrap_or(0);
                (u32::from(net) ^ u32::from(other)) & mask == 0
            }
            (IpAddr::V6(net), IpAddr::V6(other)) => {
                let shift = 128 - u32::from(self.bits.min(128));
                let mask = u128::MAX.checked_shl(shift).unwrap_or(0);
                (u128::from(net) ^ u128::from(other)) & mask == 0
            }
            _ => false,
        }
    }
}

impl fmt::Display for Net {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.bits)
    }
}

/// What the library does. `Debug` shows no password.
#[derive(Clone, PartialEq, Eq)]
pub struct Config {
    /// The SOCKS5 proxy of `sumrate up`.
    pub proxy: SocketAddrV4,
    /// User and password of the proxy, each 1 to 255 bytes.
    pub auth: Option<(Vec<u8>, Vec<u8>)>,
    /// What is reached directly, besides loopback and link-local addresses.
    pub direct: Vec<Net>,
    /// Names are resolved by the server, not here.
    pub names_at_exit: bool,
    /// The file with the names that processes have in common
    /// ([`FILE_LENGTH`](crate::names::FILE_LENGTH)). Without it no name is resolved at the exit.
    pub names: Option<String>,
    /// Programs that the library cannot reach are not started.
    pub strict: bool,
}

impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { proxy, auth, direct, names_at_exit, names, strict } = self;
        f.debug_struct("Config")
            .field("proxy", proxy)
            .field("auth", &auth.as_ref().map(|_| "<redacted>"))
            .field("direct", direct)
            .field("names_at_exit", names_at_exit)
            .field("names", names)
            .field("strict", strict)
            .finish()
    }
}

impl Config {
    /// Reads the variable's value; `None` if it is not one that [`Display`](fmt::Display) wrote.
    pub fn parse(text: &str) -> Option<Self> {
        let mut words = text.split(' ');
        if words.next() != Some("1") {
            return None;
        }
        let mut config = Self {
            proxy: words.next()?.parse().ok()?,
            auth: None,
            direct: Vec::new(),
            names_at_exit: false,
            names: None,
            strict: false,
        };
        for word in words {
            match word.split_once('=').unwrap_or((word, "")) {
                ("auth", value) => {
                    let (user, password) = value.split_once(':')?;
                    config.auth = Some((from_hex(user)?, from_hex(password)?));
                }
                ("direct", value) => config.direct.push(parse_net(value)?),
                ("names", path) => config.names = Some(path.to_owned()),
                ("names-at-exit", "") => config.names_at_exit = true,
                ("strict", "") => config.strict = true,
                _ => return None,
            }
        }
        Some(config)
    }

    /// The configuration of a process whose variable is missing or damaged. It has no proxy (port 0), so
    /// the process reaches this machine and its links alone.
    pub fn closed() -> Self {
        Self {
            proxy: SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0),
            auth: None,
            direct: Vec::new(),
            names_at_exit: true,
            names: None,
            strict: false,
        }
    }

    /// Whether an address is reached directly.
    pub fn is_direct(&self, address: IpAddr) -> bool {
        let local = match address.to_canonical() {
            IpAddr::V4(v4) => v4.is_loopback() || v4.is_link_local() || v4.octets()[0] == 0,
            IpAddr::V6(v6) => v6.is_loopback() || v6.is_unspecified() || v6.is_unicast_link_local(),
        };
        local || self.direct.iter().any(|net| net.contains(address))
    }
}

impl fmt::Display for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "1 {}", self.proxy)?;
        if let Some((user, password)) = &self.auth {
            write!(f, " auth={}:{}", to_hex(user), to_hex(password))?;
        }
        for net in &self.direct {
            write!(f, " direct={net}")?;
        }
        if let Some(path) = &self.names {
            write!(f, " names={path}")?;
        }
        f.write_str(if self.names_at_exit { " names-at-exit" } else { "" })?;
        f.write_str(if self.strict { " strict" } else { "" })
    }
}

fn parse_net(text: &str) -> Option<Net> {
    let (address, bits) = text.split_once('/')?;
    Some(Net { address: address.parse().ok()?, bits: bits.parse().ok()? })
}

fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<u8>> =
        text.chars().map(|c| c.to_digit(16).and_then(|digit| u8::try_from(digit).ok())).collect();
    let digits = digits?;
    let whole = !digits.is_empty() && digits.len() % 2 == 0 && digits.len() <= 510;
    whole.then(|| digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config() -> Config {
        Config {
            proxy: "127.0.0.1:1080".parse().unwrap(),
            auth: Some((b"me".to_vec(), b"a b:c".to_vec())),
            direct: vec![
                Net { address: "10.0.0.0".parse().unwrap(), bits: 8 },
                Net { address: "fd00::".parse().unwrap(), bits: 8 },
            ],
            names_at_exit: true,
            names: Some("/run/names".to_owned()),
            strict: true,
        }
    }

    #[test]
    fn what_is_written_is_read_again() {
        let written = config().to_string();
        assert_eq!(Config::parse(&written), Some(config()));
        let plain = Config { auth: None, direct: vec![], names: None, strict: false, ..config() };
        assert_eq!(Config::parse(&plain.to_string()), Some(plain));
        let bad = ["", "1", "2 127.0.0.1:1", "1 x:1", "1 127.0.0.1:1 auth=6:6"];
        for bad in [&bad[..], &["1 127.0.0.1:1 odd", "1 127.0.0.1:1 direct=1.2.3.4"]].concat() {
            assert_eq!(Config::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn without_a_configuration_only_this_machine_is_reached() {
        let closed = Config::closed();
        assert_eq!((closed.proxy.port(), closed.names_at_exit, &closed.names), (0, true, &None));
        assert!(closed.is_direct("127.0.0.1".parse().unwrap()));
        assert!(!closed.is_direct("192.168.1.1".parse().unwrap()));
    }

    #[test]
    fn direct_addresses() {
        let config = config();
        let direct = ["127.0.0.1", "127.9.9.9", "::1", "0.0.0.0", "::", "169.254.1.1", "fe80::1"];
        for address in [&direct[..], &["10.1.2.3", "fd12::1", "::ffff:10.1.2.3"]].concat() {
            assert!(config.is_direct(address.parse().unwrap()), "{address}");
        }
        for address in ["11.0.0.1", "192.168.1.1", "2001:db8::1", "::ffff:11.0.0.1"] {
            assert!(!config.is_direct(address.parse().unwrap()), "{address}");
        }
        let all = Net { address: "0.0.0.0".parse().unwrap(), bits: 0 };
        assert!(all.contains("203.0.113.9".parse().unwrap()));
    }
}
