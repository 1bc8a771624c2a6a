//! How far a peer may send on a stream (F2).

use fbdt_units::StreamId;

use crate::error::SessionError;

/// The advertised limit of one stream, by absolute offset.
///
/// The window grows when the sender says that it could use more and the
/// application keeps up, so that a stream that nobody reads never costs more
/// than the first window.
#[derive(Clone, Debug)]
pub(crate) struct ReceiveWindow {
    /// The window now, in bytes.
    pub size: u64,
    max_size: u64,
    /// Bytes that the application has taken.
    pub consumed: u64,
    /// Offset up to which the peer may send. Never falls.
    pub limit: u64,
    /// The window that the sender's last Want asked for, in bytes.
    wanted: u64,
}

impl ReceiveWindow {
    /// A window of `size` bytes that may grow to `max_size`.
    pub(crate) const fn new(size: u64, max_size: u64) -> Self {
        Self { size, max_size, consumed: 0, limit: size, wanted: 0 }
    }

    /// Refuses bytes of `stream` up to `end` that lie beyond the limit.
    pub(crate) const fn check(&self, stream: StreamId, end: u64) -> Result<(), SessionError> {
        let limit = self.limit;
        if end <= limit { Ok(()) } else { Err(SessionError::StreamLimit { stream, end, limit }) }
    }

    /// The application took `bytes`; says whether the limit moved far enough
    /// to tell the peer without waiting for its next data.
    pub(crate) const fn consume(&mut self, bytes: u64) -> bool {
        self.consumed += bytes;
        let limit = self.consumed + self.size;
        // Worth a message of its own: with larger steps a sender whose paths fill the window stands
        // still for the step and another RTT.
        let moves = limit >= self.limit + self.size / 16;
        if moves {
            self.limit = limit;
        }
        moves
    }

    /// The sender could use `wanted` bytes and `unread` bytes wait for the
    /// application; grows by at most `pool` bytes and says by how many, and
    /// whether the limit moved.
    pub(crate) fn want(&mut self, wanted: u64, unread: u64, pool: u64) -> (u64, bool) {
        self.wanted = wanted;
        let keeps_up = unread <= self.size / 4;
        let mut grown = 0;
        if keeps_up && wanted > self.size {
            let room = self.max_size.saturating_sub(self.size);
            grown = (wanted - self.size).min(room).min(pool);
            self.size += grown;
        }
        // Who asks waits for it, however little it is.
        let limit = self.consumed + self.size;
        let moved = limit > self.limit;
        self.limit = limit;
        (grown, moved)
    }

    /// Whether the sender's last Want asked for more: then it waits for each raise of the limit.
    pub(crate) const fn is_short(&self) -> bool {
        self.wanted > self.size
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn f2_the_limit_follows_the_application() {
        let mut window = ReceiveWindow::new(1600, 4000);
        assert_eq!(window.limit, 1600);
        assert!(!window.consume(90), "too little to be worth a message");
        assert_eq!(window.limit, 1600);
        assert!(window.consume(10));
        assert_eq!(window.limit, 1700);
    }

    #[test]
    fn the_window_grows_only_for_a_reader_that_keeps_up() {
        let mut window = ReceiveWindow::new(1000, 4000);
        assert_eq!(window.want(9000, 600, 9000), (0, false), "600 unread bytes: not keeping up");
        assert_eq!(window.want(9000, 0, 500), (500, true), "no more than the pool has");
        assert_eq!(window.want(9000, 0, 9000), (2500, true));
        assert_eq!(window.limit, 4000, "never beyond the maximum");
        assert_eq!(window.want(10, 0, 9000), (0, false), "never smaller again");
        assert_eq!(window.limit, 4000);
    }

    #[test]
    fn f8_a_sender_that_wants_more_than_the_window_waits_for_every_raise() {
        let mut window = ReceiveWindow::new(1000, 2000);
        assert!(!window.is_short());
        window.want(1500, 0, 10_000);
        assert!(!window.is_short(), "it got what it wanted");
        window.want(3000, 0, 10_000);
        assert!(window.is_short());
        window.want(2000, 0, 10_000);
        assert!(!window.is_short());
    }
}
