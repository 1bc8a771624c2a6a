//! What one end is willing to hold.

/// What one end is willing to hold; both tell each other in the handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Largest payload of a data frame, in bytes.
    pub max_frame: u32,
    /// Receive window of a new stream, in bytes.
    pub stream_window: u64,
    /// Receive window of the whole session, in bytes; no more than this is
    /// ever held for streams together. This end's writers share as much.
    pub session_window: u64,
    /// Streams that the peer may have open at once.
    pub max_streams: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_frame: 64 << 10,
            stream_window: 256 << 10,
            session_window: 256 << 20,
            max_streams: 1024,
        }
    }
}

/// A value that a session can't start with.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{field} is {value}: {advice}")]
pub struct ConfigError {
    /// The field of a configuration or of [`Limits`].
    pub field: &'static str,
    /// The value found there.
    pub value: f64,
    /// What to do about it.
    pub advice: &'static str,
}

impl ConfigError {
    /// This error of a field and its value, unless `ok`.
    ///
    /// # Errors
    /// It.
    pub const fn unless(
        ok: bool,
        field: &'static str,
        value: f64,
        advice: &'static str,
    ) -> Result<(), Self> {
        if ok { Ok(()) } else { Err(Self { field, value, advice }) }
    }
}

impl Limits {
    /// Smallest payload that every peer must accept, in bytes.
    pub const MIN_FRAME: u32 = 4 << 10;
    /// Largest payload that a frame can have, in bytes.
    pub const MAX_FRAME: u32 = 64 << 10;
    /// What holes may cost in every session, in bytes.
    const LEAST_HOLES: u64 = 8 << 20;

    /// What holes may cost beside the bytes that are held, over all streams of a session together:
    /// pieces out of order, and the ranges that say what has arrived. The messages of honest peers
    /// cannot cost as much, whatever is lost, and their pieces are larger than those that could.
    #[must_use]
    pub fn most_for_holes(&self) -> u64 {
        (self.session_window / 4).max(Self::LEAST_HOLES)
    }

    /// Checks what this end or the peer says.
    ///
    /// # Errors
    /// The first limit that is out of range.
    pub fn validate(&self) -> Result<(), ConfigError> {
        let frame = u64::from(self.max_frame);
        ConfigError::unless(
            (Self::MIN_FRAME..=Self::MAX_FRAME).contains(&self.max_frame),
            "max_frame",
            frame as f64,
            "use 4096 to 65536 bytes",
        )?;
        ConfigError::unless(
            (2 * frame..=1 << 40).contains(&self.stream_window),
            "stream_window",
            self.stream_window as f64,
            "use at least two frames",
        )?;
        ConfigError::unless(
            (self.stream_window..=1 << 40).contains(&self.session_window),
            "session_window",
            self.session_window as f64,
            "use at least one stream window",
        )?;
        ConfigError::unless(
            (1..=1 << 20).contains(&self.max_streams),
            "max_streams",
            f64::from(self.max_streams),
            "use 1 to 1048576 streams",
        )
    }
}
