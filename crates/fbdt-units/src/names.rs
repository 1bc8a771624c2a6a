//! Names of paths, subflows and streams, of their kinds and classes.

use core::fmt;

/// One local interface or address to one server address. The client numbers
/// its paths; both ends use the same number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PathId(pub u8);

/// One TCP connection on a path. Never reused within a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SubflowId(pub u32);

/// One ordered byte stream of a session. 0 is the session's own control
/// stream; the client opens odd numbers, the server even ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamId(pub u32);

impl StreamId {
    /// The stream on which the two sessions talk to each other.
    pub const CONTROL: Self = Self(0);

    /// Set in the name of a stream's message space (F16).
    pub const MESSAGES: u32 = 1 << 31;

    /// Whether this names a stream's message space.
    #[must_use]
    pub const fn is_message_space(self) -> bool {
        self.0 & Self::MESSAGES != 0
    }

    /// The stream that a message space belongs to; a stream itself otherwise.
    #[must_use]
    pub const fn stream(self) -> Self {
        Self(self.0 & !Self::MESSAGES)
    }

    /// How many streams of the same opener come before this one.
    #[must_use]
    pub const fn index(self) -> u64 {
        (self.0.saturating_sub(1) / 2) as u64
    }

    /// The `index`-th stream that `role` opens, if the number space has it.
    #[must_use]
    pub fn nth(role: Role, index: u64) -> Option<Self> {
        let first: u64 = match role {
            Role::Client => 1,
            Role::Server => 2,
        };
        let id = u32::try_from(index.checked_mul(2)?.checked_add(first)?).ok().map(Self)?;
        (!id.is_message_space()).then_some(id)
    }

    /// Who opens a stream with this number; `None` for the control stream.
    #[must_use]
    pub const fn opener(self) -> Option<Role> {
        match self.0 {
            0 => None,
            n if n % 2 == 1 => Some(Role::Client),
            _ => Some(Role::Server),
        }
    }
}

/// One sequence of offsets that is sent and acknowledged on its own.
///
/// On the wire, and in the fields of other modules that hold wire names, a [`StreamId`] names it:
/// the bit [`StreamId::MESSAGES`] tells a stream's messages from its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Space {
    /// The bytes of the session's control stream.
    Control,
    /// The bytes of a stream of the application.
    Bytes(StreamId),
    /// The messages of a stream (F16).
    Messages(StreamId),
}

impl Space {
    /// The space that `name` stands for on the wire.
    #[must_use]
    pub const fn of_wire(name: StreamId) -> Self {
        match name {
            StreamId(0) => Self::Control,
            name if name.is_message_space() => Self::Messages(name.stream()),
            name => Self::Bytes(name),
        }
    }

    /// Its name on the wire.
    #[must_use]
    pub const fn to_wire(self) -> StreamId {
        match self {
            Self::Control => StreamId::CONTROL,
            Self::Bytes(id) => id,
            Self::Messages(id) => StreamId(id.0 | StreamId::MESSAGES),
        }
    }

    /// The bytes of a stream, the control stream or another.
    #[must_use]
    pub const fn bytes_of(id: StreamId) -> Self {
        match id {
            StreamId(0) => Self::Control,
            id => Self::Bytes(id),
        }
    }

    /// The stream that it belongs to.
    #[must_use]
    pub const fn stream(self) -> StreamId {
        match self {
            Self::Control => StreamId::CONTROL,
            Self::Bytes(id) | Self::Messages(id) => id,
        }
    }

    /// Whether it holds messages.
    #[must_use]
    pub const fn is_messages(self) -> bool {
        matches!(self, Self::Messages(_))
    }
}

impl fmt::Display for StreamId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for PathId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Which end of the session this is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// Dials the paths.
    Client,
    /// Accepts them.
    Server,
}

impl Role {
    /// The other end.
    #[must_use]
    pub const fn peer(self) -> Self {
        match self {
            Self::Client => Self::Server,
            Self::Server => Self::Client,
        }
    }
}

/// Traffic class of a stream (the four 3GPP classes, F11).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// Two-way, delay above all: calls, games.
    Conversational,
    /// Small and bursty: pages, shells.
    #[default]
    Interactive,
    /// A steady flow that is played while it arrives.
    Streaming,
    /// Large transfers.
    Background,
}

impl Class {
    /// Every class, by falling priority.
    pub const ALL: [Self; 4] =
        [Self::Conversational, Self::Interactive, Self::Streaming, Self::Background];

    /// The class's number on the wire.
    #[must_use]
    pub const fn to_wire(self) -> u8 {
        match self {
            Self::Conversational => 0,
            Self::Interactive => 1,
            Self::Streaming => 2,
            Self::Background => 3,
        }
    }

    /// The name used in flags and reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Conversational => "conversational",
            Self::Interactive => "interactive",
            Self::Streaming => "streaming",
            Self::Background => "background",
        }
    }

    /// The class of this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|class| class.name() == name)
    }

    /// The class that has this number on the wire.
    #[must_use]
    pub const fn from_wire(value: u8) -> Option<Self> {
        match value {
            0 => Some(Self::Conversational),
            1 => Some(Self::Interactive),
            2 => Some(Self::Streaming),
            3 => Some(Self::Background),
            _ => None,
        }
    }
}

/// A set of traffic classes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Classes(u8);

impl Classes {
    /// No class.
    pub const NONE: Self = Self(0);
    /// Every class.
    pub const ALL: Self = Self((1 << Class::ALL.len()) - 1);

    /// This set and `class`.
    #[must_use]
    pub const fn with(self, class: Class) -> Self {
        Self(self.0 | 1 << class as u8)
    }

    /// Whether `class` is in it.
    #[must_use]
    pub const fn contains(self, class: Class) -> bool {
        self.0 & 1 << class as u8 != 0
    }

    /// Whether no class is in it.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Its classes, by falling priority.
    pub fn iter(self) -> impl Iterator<Item = Class> {
        Class::ALL.into_iter().filter(move |class| self.contains(*class))
    }
}

impl FromIterator<Class> for Classes {
    fn from_iter<T: IntoIterator<Item = Class>>(classes: T) -> Self {
        classes.into_iter().fold(Self::NONE, Self::with)
    }
}

/// How a path is used beside the others (F15): paths of the best priority
/// that has an active one carry bytes, the rest stand by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Priority(u8);

impl Priority {
    /// Carries bytes whenever it can.
    pub const PRIMARY: Self = Self(0);
    /// Stands by while a primary path is active.
    pub const BACKUP: Self = Self(1);
    /// The priorities' names, by falling priority.
    pub const NAMES: [&'static str; 10] = [
        "primary", "backup", "backup2", "backup3", "backup4", "backup5", "backup6", "backup7",
        "backup8", "backup9",
    ];

    /// 0 is primary, 1 to 9 stand by, a higher number behind a lower one;
    /// `None` above that.
    #[must_use]
    pub const fn new(level: u8) -> Option<Self> {
        if (level as usize) < Self::NAMES.len() { Some(Self(level)) } else { None }
    }

    /// Whether it carries bytes whenever it can.
    #[must_use]
    pub const fn is_primary(self) -> bool {
        self.0 == 0
    }

    /// The name used in flags, reports and on the wire.
    #[must_use]
    pub const fn name(self) -> &'static str {
        Self::NAMES[self.0 as usize]
    }

    /// The priority of this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        let level = Self::NAMES.iter().position(|known| *known == name)?;
        u8::try_from(level).ok().and_then(Self::new)
    }
}

/// From which end of a window a path sends (F3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Direction {
    /// From the window's start upward.
    Forward,
    /// From the top of its segment downward.
    Backward,
    /// Where its bytes arrive when delivery reaches them.
    JustInTime,
    /// The lowest unsent bytes, whichever path it is.
    InOrder,
    /// What the scheduler assigned to it ahead.
    Assigned,
}

impl Direction {
    /// The name used in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Forward => "forward",
            Self::Backward => "backward",
            Self::JustInTime => "just-in-time",
            Self::InOrder => "in-order",
            Self::Assigned => "assigned",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn f16_each_space_has_its_own_name_on_the_wire() {
        let (id, last) = (StreamId(7), StreamId(StreamId::MESSAGES - 1));
        let spaces = [Space::Control, Space::Bytes(id), Space::Bytes(last), Space::Messages(id)];
        for space in spaces.into_iter().chain([Space::Messages(last)]) {
            assert_eq!(Space::of_wire(space.to_wire()), space);
        }
        assert!(spaces.is_sorted_by_key(|space| space.to_wire()), "in the order of their names");
        assert_eq!(Space::bytes_of(StreamId::CONTROL), Space::Control);
        assert_eq!(Space::Messages(id).stream(), Space::bytes_of(id).stream());
    }

    #[test]
    fn stream_numbers_alternate() {
        assert_eq!(StreamId::nth(Role::Client, 0), Some(StreamId(1)));
        assert_eq!(StreamId::nth(Role::Server, 3), Some(StreamId(8)));
        for index in [0, 1, 77] {
            for role in [Role::Client, Role::Server] {
                let id = StreamId::nth(role, index).unwrap();
                assert_eq!(id.index(), index);
                assert_eq!(id.opener(), Some(role));
            }
        }
        assert_eq!(StreamId::nth(Role::Client, u64::from(u32::MAX)), None);
        assert_eq!(StreamId::CONTROL.opener(), None);
    }

    #[test]
    fn priorities_have_names() {
        for level in 0..10 {
            let priority = Priority::new(level).unwrap();
            assert_eq!(Priority::from_name(priority.name()), Some(priority));
            assert_eq!(priority.is_primary(), level == 0);
        }
        assert_eq!((Priority::new(10), Priority::from_name("standby")), (None, None));
        assert!(Priority::PRIMARY < Priority::BACKUP);
    }
}
