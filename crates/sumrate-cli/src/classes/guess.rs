//! Guesses a connection's class from what its application sends, and when.

use std::time::{Duration, Instant};

use fbdt::Class;

/// Writes with less than this between them belong to one burst.
const PAUSE: Duration = Duration::from_millis(250);
/// After a pause of this length a connection that was busy with a large transfer begins anew.
const REST: Duration = Duration::from_secs(1);
/// A burst of this many bytes is a large transfer.
const LARGE: u64 = 2 << 20;
/// Bursts of at least this many bytes ...
const SEGMENT: u64 = 128 << 10;
/// ... that follow each other so often are a stream that is played while it arrives.
const SEGMENTS: u32 = 3;
/// A burst of a stream that is so many times as long as its longest segment, ...
const OUTGROWN: u64 = 8;
/// ... and of at least so many bytes, is no segment of it but a large transfer.
const LEAST_OUTGROWN: u64 = 32 << 20;
/// A longer burst is no segment of a stream, however regular: a file.
const LONGEST_SEGMENT: u64 = 256 << 20;
/// The longest pause between two of them.
const SEGMENT_PAUSE: Duration = Duration::from_secs(20);
/// Writes of at most this many bytes ...
const SMALL: u64 = 1500;
/// ... at least so many in one burst ...
const TALK: u32 = 30;
/// ... over at least this time are a conversation.
const TALK_TIME: Duration = Duration::from_secs(2);

/// A burst before which nothing was missing but a reader must be so long: sockets let a steady reader
/// take what lies in them by up to about a third of their buffers at once.
const READ_SEGMENT: u64 = 4 << 20;

/// Why nothing was sent for a time.
#[derive(Debug, Clone, Copy, Default)]
pub struct Waited {
    /// The application had nothing.
    pub idle: Duration,
    /// Whoever reads at the other end did not.
    pub unread: Duration,
}

/// The class of one direction of a connection, guessed. Time is an argument, so that the same
/// writes give the same guess.
#[derive(Debug, Clone)]
pub struct Guess {
    class: Class,
    begun: Option<Instant>,
    last: Option<Instant>,
    bytes: u64,
    writes: u32,
    /// Bytes since the reader last made a pause.
    read: u64,
    only_small: bool,
    segments: u32,
    longest_segment: u64,
}

impl Default for Guess {
    fn default() -> Self {
        Self {
            class: Class::Interactive,
            begun: None,
            last: None,
            bytes: 0,
            writes: 0,
            read: 0,
            only_small: true,
            segments: 0,
            longest_segment: 0,
        }
    }
}

impl Guess {
    /// The class as guessed so far.
    pub const fn class(&self) -> Class {
        self.class
    }

    /// The application sent `bytes` after it had waited. Returns the class if it has changed.
    pub fn sent(&mut self, now: Instant, waited: Waited, bytes: u64) -> Option<Class> {
        let before = self.class;
        let unread = waited.unread >= PAUSE;
        let played = unread && self.read >= READ_SEGMENT;
        if waited.idle >= PAUSE || played || self.begun.is_none() {
            self.begin(now, waited);
        }
        if unread {
            self.read = 0;
        }
        self.last = Some(now);
        self.bytes += bytes;
        self.read += bytes;
        self.writes += 1;
        self.only_small &= bytes <= SMALL;
        let lasted = self.begun.map_or(Duration::ZERO, |begun| now - begun);
        let talks = self.only_small && self.writes >= TALK && lasted >= TALK_TIME;
        let large = match self.class {
            Class::Streaming => LEAST_OUTGROWN.max(OUTGROWN * self.longest_segment),
            _ => LARGE,
        };
        if self.bytes >= large {
            self.class = Class::Background;
        } else if talks && self.class == Class::Interactive {
            self.class = Class::Conversational;
        } else if self.class == Class::Conversational && !self.only_small {
            self.class = Class::Interactive;
        }
        (self.class != before).then_some(self.class)
    }

    /// A new burst begins after a pause.
    fn begin(&mut self, now: Instant, waited: Waited) {
        let outgrown = self.segments >= SEGMENTS && self.class == Class::Background;
        let segment = (SEGMENT..=LONGEST_SEGMENT).contains(&self.bytes);
        let pause = waited.idle.max(waited.unread);
        let regular = segment && pause <= SEGMENT_PAUSE && !outgrown;
        self.segments = if regular { self.segments + 1 } else { 0 };
        self.longest_segment = if regular { self.longest_segment.max(self.bytes) } else { 0 };
        match self.class {
            _ if self.segments >= SEGMENTS => self.class = Class::Streaming,
            Class::Background if waited.idle >= REST => self.class = Class::Interactive,
            Class::Streaming if self.segments == 0 => self.class = Class::Interactive,
            _ => {}
        }
        self.begun = Some(now);
        self.bytes = 0;
        self.writes = 0;
        self.only_small = true;
    }
}

/// Bytes per second of datagrams up to which they are taken for a call or a game.
const CALL: u64 = 500_000;
/// The same for a stream that is played.
const PLAYED: u64 = 4_000_000;
/// The rate is judged so often.
const JUDGED: Duration = Duration::from_secs(1);

/// The class of an association's datagrams, guessed from their rate: calls and games are slow.
#[derive(Debug, Clone, Default)]
pub struct DatagramGuess {
    since: Option<Instant>,
    bytes: u64,
    class: Option<Class>,
}

impl DatagramGuess {
    /// The class as guessed so far.
    pub fn class(&self) -> Class {
        self.class.unwrap_or(Class::Conversational)
    }

    /// A datagram of `bytes` was sent. Returns the class if it has changed.
    pub fn sent(&mut self, now: Instant, bytes: u64) -> Option<Class> {
        self.bytes += bytes;
        let since = *self.since.get_or_insert(now);
        let lasted = now - since;
        let before = self.class();
        let rate = |allowed: u64| self.bytes as f64 > allowed as f64 * JUDGED.as_secs_f64();
        // Too many bytes are seen at once, too few when the time is over.
        let class = match () {
            () if rate(PLAYED) => Class::Background,
            () if rate(CALL) => before.max(Class::Streaming),
            () if lasted < JUDGED => before,
            () => Class::Conversational,
        };
        if lasted >= JUDGED {
            (self.since, self.bytes) = (Some(now), 0);
        }
        self.class = Some(class);
        (class != before).then_some(class)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    /// Feeds `(pause in ms, bytes)`; the classes that were found on the way.
    fn classes(writes: impl IntoIterator<Item = (u32, u64)>) -> Vec<Class> {
        let (mut guess, mut now) = (Guess::default(), Instant::now());
        let mut found = Vec::new();
        for (pause, bytes) in writes {
            now += MS * pause;
            let waited = Waited { idle: MS * pause, unread: Duration::ZERO };
            found.extend(guess.sent(now, waited, bytes));
        }
        found
    }

    /// Feeds a file: `(pause of the reader in ms, KiB that it took after it)`.
    fn of_readers(pauses: impl IntoIterator<Item = (u32, u64)>) -> Vec<Class> {
        let (mut guess, mut now) = (Guess::default(), Instant::now());
        let mut found = Vec::new();
        for (pause, kib) in pauses {
            now += MS * pause;
            let mut waited = Waited { idle: Duration::ZERO, unread: MS * pause };
            for _ in 0..kib.div_ceil(64) {
                found.extend(guess.sent(now, std::mem::take(&mut waited), 64 << 10));
                now += MS;
            }
        }
        found
    }

    #[test]
    fn f11_a_file_that_is_played_while_it_arrives_is_streaming() {
        let played = || std::iter::repeat_n((600, 6 << 10), 20);
        assert_eq!(of_readers(played()), [Class::Background, Class::Streaming]);
        let rest = std::iter::repeat_n((1500, 6 << 10), 20);
        assert_eq!(of_readers(rest), [Class::Background, Class::Streaming], "it never rests");
        let then = played().chain([(600, 300 << 10)]);
        let expected = [Class::Background, Class::Streaming, Class::Background];
        assert_eq!(of_readers(then), expected, "the reader takes all that comes");
    }

    #[test]
    fn f11_a_slow_reader_of_a_file_is_no_player() {
        for pause in [100, 300, 2000] {
            let steady = std::iter::repeat_n((pause, 1500), 200);
            assert_eq!(of_readers(steady), [Class::Background], "{pause}");
        }
    }

    #[test]
    fn f11_a_large_transfer_is_background_until_it_rests() {
        let transfer = || std::iter::repeat_n((1, 64 << 10), 40);
        assert_eq!(classes(transfer()), [Class::Background]);
        let then = transfer().chain([(1500, 500)]).chain(transfer());
        let expected = [Class::Background, Class::Interactive, Class::Background];
        assert_eq!(classes(then), expected);
    }

    #[test]
    fn f11_regular_segments_are_streaming() {
        let segment =
            || [(4000, 64 << 10)].into_iter().chain(std::iter::repeat_n((1, 64 << 10), 9));
        let found = classes((0..5).flat_map(|_| segment()));
        assert_eq!(found, [Class::Streaming]);
        let rest = (0..4).flat_map(|_| segment()).chain([(60_000, 300)]);
        assert_eq!(classes(rest), [Class::Streaming, Class::Interactive]);
    }

    #[test]
    fn f11_a_transfer_after_a_stream_on_the_same_connection_is_background() {
        let segments = || {
            (0..5).flat_map(|_| {
                [(4000, 64 << 10)].into_iter().chain(std::iter::repeat_n((1, 64 << 10), 20))
            })
        };
        let transfer = |mib: usize| std::iter::repeat_n((1, 1 << 20), mib);
        let then = segments().chain(transfer(40));
        assert_eq!(classes(then), [Class::Streaming, Class::Background]);
        let rested = segments().chain(transfer(40)).chain([(1500, 500)]);
        assert_eq!(classes(rested), [Class::Streaming, Class::Background, Class::Interactive]);
        let grown = segments().chain(transfer(8));
        assert_eq!(classes(grown), [Class::Streaming], "a better quality is no transfer");
        let files = (0..6).flat_map(|_| [(2000, 100)].into_iter().chain(transfer(300)));
        assert!(!classes(files).contains(&Class::Streaming), "nor are files segments");
    }

    #[test]
    fn f11_small_writes_at_a_steady_pace_are_a_conversation() {
        assert_eq!(classes(std::iter::repeat_n((20, 160), 200)), [Class::Conversational]);
        let typed = std::iter::repeat_n((300, 40), 200);
        assert_eq!(classes(typed), [], "one burst each");
        let page = (0..50).flat_map(|_| [(900, 700), (5, 30_000)]);
        assert_eq!(classes(page), []);
        let turned = std::iter::repeat_n((20, 160), 200).chain([(1, 9000)]);
        assert_eq!(classes(turned), [Class::Conversational, Class::Interactive]);
    }

    #[test]
    fn f11_datagrams_by_their_rate() {
        let run = |bytes: u64, every: u32, count: usize| {
            let (mut guess, mut now) = (DatagramGuess::default(), Instant::now());
            let mut found = Vec::new();
            for _ in 0..count {
                now += MS * every;
                found.extend(guess.sent(now, bytes));
            }
            found
        };
        assert_eq!(run(200, 10, 1000), []);
        assert_eq!(run(1200, 1, 3000), [Class::Streaming]);
        assert_eq!(run(12_000, 1, 3000), [Class::Streaming, Class::Background]);
    }
}
