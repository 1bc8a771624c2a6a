//! `--path NAME=IFACE | NAME=LOCAL_IP[@SERVER_IP[:PORT]]`, each with `,backup` or `,backup2` to `,backup9`
//! behind it where the path stands by.

use std::net::IpAddr;
use std::str::FromStr;

use fbdt_proto::{PathLabel, Priority};

/// Longest interface name that Linux accepts.
const IFACE_MAX: usize = 15;

/// One path as the user named it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathArg {
    /// The user's name for the path, such as `wifi`.
    pub name: String,
    /// What its connections are bound to.
    pub binding: PathBinding,
    /// The server address and port of this path where they differ from the link's.
    pub server: Option<(IpAddr, Option<u16>)>,
    /// Whether it carries bytes or stands by.
    pub priority: Priority,
}

/// What a path's connections are bound to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PathBinding {
    /// A network interface.
    Interface(String),
    /// A source address.
    Address(IpAddr),
}

/// Why a `--path` was refused.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum PathArgError {
    /// No `=`.
    #[error("`{0}` has no name; write NAME=IFACE or NAME=LOCAL_IP, for example wifi=wlan0")]
    NoName(String),
    /// Name empty, too long or with odd characters.
    #[error("`{0}` cannot be a path's name; use 1 to 32 letters, digits, `-`, `_` or `.`")]
    BadName(String),
    /// No room for the priority beside the name.
    #[error("`{name}` is too long for a backup path's name: at most {max} bytes")]
    LongBackup {
        /// The name.
        name: String,
        /// Longest name of a path with this priority.
        max: usize,
    },
    /// Not a priority.
    #[error(
        "`{0}` is not a priority; write NAME=LOCAL,backup, or backup2 to backup9 for later ones"
    )]
    BadPriority(String),
    /// Neither address nor a possible interface name.
    #[error(
        "`{0}` is neither an address nor an interface name; write for example wlan0 or 192.168.1.7"
    )]
    BadLocal(String),
    /// The server part is no address.
    #[error("`{0}` is not a server address; write IP, IP:PORT or [IPV6]:PORT")]
    BadServer(String),
    /// IPv4 on one side and IPv6 on the other.
    #[error("the path goes from {local} to {server}: both must be IPv4 or both IPv6")]
    MixedFamilies {
        /// Source address.
        local: IpAddr,
        /// Server address.
        server: IpAddr,
    },
}

impl FromStr for PathArg {
    type Err = PathArgError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (name, rest) =
            text.split_once('=').ok_or_else(|| PathArgError::NoName(text.to_owned()))?;
        if !is_name(name) {
            return Err(PathArgError::BadName(name.to_owned()));
        }
        let (rest, priority) = match rest.rsplit_once(',') {
            Some((rest, word)) => {
                let bad = || PathArgError::BadPriority(word.to_owned());
                (rest, Priority::from_name(word).ok_or_else(bad)?)
            }
            None => (rest, Priority::PRIMARY),
        };
        check_length(name, priority)?;
        let (local, server) = match rest.split_once('@') {
            Some((local, server)) => (local, Some(parse_server(server)?)),
            None => (rest, None),
        };
        let binding = parse_local(local)?;
        if let (PathBinding::Address(local), Some((server, _))) = (&binding, server)
            && local.is_ipv4() != server.is_ipv4()
        {
            return Err(PathArgError::MixedFamilies { local: *local, server });
        }
        Ok(Self { name: name.to_owned(), binding, server, priority })
    }
}

/// The priority travels beside the name.
fn check_length(name: &str, priority: Priority) -> Result<(), PathArgError> {
    let max = PathLabel::name_max(priority);
    if name.len() <= max {
        return Ok(());
    }
    Err(PathArgError::LongBackup { name: name.to_owned(), max })
}

impl PathArg {
    /// Has the path stand by, unless it does already.
    ///
    /// # Errors
    /// A name that leaves no room for it.
    pub fn stand_by(&mut self) -> Result<(), PathArgError> {
        self.priority = self.priority.max(Priority::BACKUP);
        check_length(&self.name, self.priority)
    }
}

fn is_name(name: &str) -> bool {
    !name.is_empty()
        && name.len() <= PathLabel::name_max(Priority::PRIMARY)
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b))
}

fn parse_local(text: &str) -> Result<PathBinding, PathArgError> {
    if let Ok(address) = unbracket(text).parse() {
        return Ok(PathBinding::Address(address));
    }
    let plausible = !text.is_empty()
        && text.len() <= IFACE_MAX
        && !text.starts_with('[')
        && text.bytes().all(|b| b.is_ascii_graphic() && b != b'/' && b != b':');
    // 10.0.0.300 is a mistyped address, not an interface.
    let looks_like_address = text.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    if plausible && !looks_like_address {
        Ok(PathBinding::Interface(text.to_owned()))
    } else {
        Err(PathArgError::BadLocal(text.to_owned()))
    }
}

fn parse_server(text: &str) -> Result<(IpAddr, Option<u16>), PathArgError> {
    let bad = || PathArgError::BadServer(text.to_owned());
    if let Ok(address) = unbracket(text).parse() {
        return Ok((address, None));
    }
    let socket: std::net::SocketAddr = text.parse().map_err(|_| bad())?;
    if socket.port() == 0 {
        return Err(bad());
    }
    Ok((socket.ip(), Some(socket.port())))
}

fn unbracket(text: &str) -> &str {
    text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parse(text: &str) -> Result<PathArg, PathArgError> {
        text.parse()
    }

    #[test]
    fn forms() {
        assert_eq!(
            parse("wifi=wlan0").unwrap().binding,
            PathBinding::Interface("wlan0".to_owned())
        );
        let full = parse("wigig=10.1.2.3@10.9.9.9:7443").unwrap();
        assert_eq!(full.binding, PathBinding::Address("10.1.2.3".parse().unwrap()));
        assert_eq!(full.server, Some(("10.9.9.9".parse().unwrap(), Some(7443))));
        let six = parse("a=fd00::1@[fd00::2]:7443").unwrap();
        assert_eq!(six.server, Some(("fd00::2".parse().unwrap(), Some(7443))));
        let bare = parse("a=[fd00::1]@fd00::2").unwrap();
        assert_eq!(bare.server, Some(("fd00::2".parse().unwrap(), None)));
        assert_eq!(parse("a=wlan0@10.0.0.1").unwrap().server.unwrap().1, None);
    }

    #[test]
    fn refusals() {
        assert!(matches!(parse("wlan0"), Err(PathArgError::NoName(_))));
        assert!(matches!(parse("=wlan0"), Err(PathArgError::BadName(_))));
        assert!(matches!(parse("a b=wlan0"), Err(PathArgError::BadName(_))));
        assert!(matches!(parse("a="), Err(PathArgError::BadLocal(_))));
        assert!(matches!(parse("a=10.0.0.300"), Err(PathArgError::BadLocal(_))));
        assert!(matches!(parse("a=interface-name-too-long"), Err(PathArgError::BadLocal(_))));
        assert!(matches!(parse("a=10.0.0.1@host"), Err(PathArgError::BadServer(_))));
        assert!(matches!(parse("a=10.0.0.1@10.0.0.2:0"), Err(PathArgError::BadServer(_))));
        assert!(matches!(parse("a=10.0.0.1@fd00::1"), Err(PathArgError::MixedFamilies { .. })));
    }

    #[test]
    fn a_path_can_stand_by() {
        let backup = parse("lte=wwan0,backup").unwrap();
        assert_eq!(backup.binding, PathBinding::Interface("wwan0".to_owned()));
        assert_eq!(backup.priority, Priority::BACKUP);
        let last = parse("sat=10.0.0.7@10.0.0.1:9,backup2").unwrap();
        assert_eq!(Some(last.priority), Priority::new(2));
        assert_eq!(parse("a=wlan0,primary").unwrap().priority, Priority::PRIMARY);
        for bad in ["a=wlan0,", "a=wlan0,spare", "a=wlan0,backup10"] {
            assert!(matches!(parse(bad), Err(PathArgError::BadPriority(_))), "{bad}");
        }
        let long = "x".repeat(30);
        assert!(parse(&format!("{long}=wlan0")).is_ok());
        let refused = parse(&format!("{long}=wlan0,backup"));
        assert!(matches!(refused, Err(PathArgError::LongBackup { max: 25, .. })), "{refused:?}");
        let mut later = parse("a=wlan0").unwrap();
        later.stand_by().unwrap();
        assert_eq!(later.priority, Priority::BACKUP);
    }

    proptest! {
        #[test]
        fn never_panics(text in "\\PC{0,60}") {
            let _ = parse(&text);
        }
    }
}
