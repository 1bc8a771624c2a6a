//! What keeps a path from working, for programs.

/// The kind of what went wrong with a path last.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum PathTrouble {
    /// The server's address shows another key than the link's: a captive portal, or another server.
    OtherKey,
    /// A server of the same key that does not know the session: another one behind the same name.
    OtherServer,
    /// The server refused.
    Refused,
    /// The server's machine takes no connections at this port.
    ConnectionRefused,
    /// Nothing came back.
    NoAnswer,
    /// The server answers probes, and no new connections: it seems to limit them.
    Limited,
    /// The machine, or a router, knows no way there.
    Unreachable,
    /// The network has IPv6 only and no NAT64, and the server has IPv4 addresses only.
    NoNat64,
    /// The path has no address of the server's family.
    NoFamily,
    /// The server's name has no address.
    Unresolved,
    /// The interface or its address is gone.
    InterfaceGone,
    /// A connection that was up has ended.
    Lost,
    /// Something else: the reason says what.
    #[default]
    Other,
}

impl PathTrouble {
    /// All of them.
    pub const ALL: [Self; 13] = [
        Self::OtherKey,
        Self::OtherServer,
        Self::Refused,
        Self::ConnectionRefused,
        Self::NoAnswer,
        Self::Limited,
        Self::Unreachable,
        Self::NoNat64,
        Self::NoFamily,
        Self::Unresolved,
        Self::InterfaceGone,
        Self::Lost,
        Self::Other,
    ];

    /// One word for programs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::OtherKey => "other-key",
            Self::OtherServer => "other-server",
            Self::Refused => "refused",
            Self::ConnectionRefused => "connection-refused",
            Self::NoAnswer => "no-answer",
            Self::Limited => "limited",
            Self::Unreachable => "unreachable",
            Self::NoNat64 => "no-nat64",
            Self::NoFamily => "no-family",
            Self::Unresolved => "unresolved",
            Self::InterfaceGone => "interface-gone",
            Self::Lost => "lost",
            Self::Other => "other",
        }
    }

    /// The kind of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|trouble| trouble.name() == name)
    }

    /// A few words for people, to stand before "on" and the path's name.
    pub const fn words(self) -> &'static str {
        match self {
            Self::OtherKey => "another server's key",
            Self::OtherServer => "another server",
            Self::Refused => "refused by the server",
            Self::ConnectionRefused => "connection refused",
            Self::NoAnswer => "no answer",
            Self::Limited => "new connections limited",
            Self::Unreachable => "network unreachable",
            Self::NoNat64 => "no NAT64 to its IPv4 address",
            Self::NoFamily => "no IPv6",
            Self::Unresolved => "its name is not resolved",
            Self::InterfaceGone => "no interface",
            Self::Lost => "connection lost",
            Self::Other => "an error",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_they_are_written() {
        for trouble in PathTrouble::ALL {
            assert_eq!(PathTrouble::from_name(trouble.name()), Some(trouble));
        }
        assert_eq!(PathTrouble::from_name("else"), None);
    }
}
