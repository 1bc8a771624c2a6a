//! One end of a session: the facade over all other modules.
//!
//! State and wiring live here; what is decided is decided by the modules that
//! the parts are named after.

mod application;
mod buffers;
mod control;
mod input;
mod memory;
mod messages;
mod observe;
mod paths;
mod picture;
mod policy;
mod send;
mod shutdown;
mod streams;
mod transmit;
mod turns;

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::vec::Vec;

use fbdt_coupling::{Coupling, CouplingMode, WindowGrowth};
use fbdt_units::{Class, Instant, RangeSet, Role, StreamId};
use fbdt_wire::{ConfigError, Limits};

use self::messages::Channel;
use self::policy::Appetite;
use self::turns::{Clock, Turns};
use crate::config::Config;
use crate::error::CloseReason;
use crate::event::Event;
use crate::path::{CopyReason, PathState};
use crate::receive::ReceiveStream;
use crate::schedule::{JustInTime, Needs, Scheduler};
use crate::stats::{IdleTimes, MessageStats};
use crate::stream::{SendStream, Wants};

/// Both halves of one stream.
#[derive(Debug)]
struct Stream {
    send: SendStream,
    receive: ReceiveStream,
    /// Its messages, once there were any (F16).
    messages: Option<Box<Channel>>,
    /// The class of what is sent was chosen here, or said by the peer's Open (F11).
    has_class: bool,
    /// That class follows how the application behaves (F11).
    class_guessed: bool,
    /// The application dropped its handle.
    released: bool,
    /// A reader waits.
    reader_blocked: bool,
    /// How often the peer is told that a larger window would help.
    wants: Wants,
    /// The largest window asked for.
    asked: u64,
    /// What its holes cost when they were last counted.
    holes: u64,
    /// Memory that it took when it was last counted, in bytes.
    memory: u64,
}

/// How many streams each end may open and has opened.
#[derive(Debug)]
struct StreamCounts {
    /// Streams opened here.
    local: u64,
    /// Streams that may be opened here.
    local_limit: u64,
    /// Streams that the peer may open.
    peer_limit: u64,
    /// Streams of the peer seen so far.
    peer: u64,
    /// Indices of the peer's streams that are over or open.
    peer_seen: RangeSet,
    /// The peer's streams that are over.
    peer_closed: u64,
}

/// Limits over all streams together, by sums of offsets (F2).
#[derive(Debug, Default)]
struct SessionCredit {
    /// Sum of the highest offsets sent.
    sent: u64,
    /// What the peer allows.
    send_limit: u64,
    /// Sum of the highest offsets received.
    received: u64,
    /// Sum of what applications took, or nobody will take.
    consumed: u64,
    /// What this end allows.
    receive_limit: u64,
    /// Sum of what streams' windows have grown by.
    grown: u64,
    /// Bytes by which the windows of their messages have grown.
    grown_messages: u64,
    /// Sum of what streams' holes cost.
    holes: u64,
}

/// What was counted over all streams.
#[derive(Debug, Default)]
struct Totals {
    new_bytes: u64,
    copied: [u64; CopyReason::ALL.len()],
    classes: [ClassTotals; Class::ALL.len()],
    received: u64,
    duplicate: u64,
    held_peak: u64,
    /// Of streams that are over.
    messages: MessageStats,
}

/// The same for one class (F11).
#[derive(Debug, Default)]
struct ClassTotals {
    new_bytes: u64,
    copied: [u64; CopyReason::ALL.len()],
    /// Of them those of overdue bytes by idle paths for streams whose windows were full.
    freeing: u64,
    /// Of them those of messages that the program wants sent twice.
    asked: u64,
    received: u64,
    duplicate: u64,
}

impl ClassTotals {
    /// Copies that were sent by choice, and not because a path failed, a window was full or the
    /// program asked for them.
    const fn chosen(&self) -> u64 {
        let copied =
            self.copied[CopyReason::Overdue as usize] + self.copied[CopyReason::Idle as usize];
        copied.saturating_sub(self.freeing + self.asked)
    }
}

/// One end of a session over any number of paths.
///
/// See the crate's documentation for the order of calls. A session holds no
/// resource besides memory: dropping it ends it without a word to the peer.
#[derive(Debug)]
pub struct Session {
    role: Role,
    config: Config,
    paths: Vec<PathState>,
    why_idle: Vec<IdleTimes>,
    /// Of each path, whether rivals with a weight must wait for it (F15).
    appetites: Vec<Appetite>,
    streams: BTreeMap<StreamId, Stream>,
    /// Streams with bytes that are unsent, lost or unacknowledged.
    busy: Turns,
    clock: Clock,
    /// Whether both ends speak the version that has messages (F16).
    with_messages: bool,
    /// Streams with messages that are unsent, lost or unacknowledged.
    talking: BTreeSet<StreamId>,
    /// Streams that have come to their limit, or will soon, and whose windows
    /// were not looked at since.
    near_limit: BTreeSet<StreamId>,
    counts: StreamCounts,
    credit: SessionCredit,
    totals: Totals,
    peer_limits: Limits,
    scheduler: Box<dyn Scheduler>,
    /// What that scheduler needs.
    needs: Needs,
    /// Which paths share a bottleneck, if anybody asks (F17).
    coupling: Option<Coupling>,
    control_input: Vec<u8>,
    /// Memory that all streams take together, in bytes.
    memory: u64,
    /// Bytes by which that may grow, as the driver said last.
    room: u64,
    events: VecDeque<Event>,
    close: Option<CloseReason>,
    /// It closes then, or as soon as the peer has everything.
    leaves_at: Option<Instant>,
    /// The peer's Close, and until when other subflows may bring frames that the peer sent before it.
    peer_left: Option<(CloseReason, Instant)>,
    /// Bytes that the peer had not acknowledged when the session closed.
    left_behind: u64,
    next_subflow: u32,
    all_down_since: Option<Instant>,
    last_buffer_check: Instant,
    last_overdue_check: Instant,
    tick: Instant,
    /// Stream bytes sent and received when that was looked at last, and when they last changed.
    carried: (u64, Instant),
    /// Counts what may have given a path something to send.
    news: u64,
}

/// Windows that do not fall by loss, or are coupled already, are left alone.
fn coupling(config: &Config) -> Option<Coupling> {
    let possible = config.window_growth != WindowGrowth::Other;
    let wanted = config.coupling == CouplingMode::Fair && possible;
    wanted.then(|| Coupling::new(config.window_growth))
}

impl Session {
    /// A session without paths, that may send what the peer's `peer_limits`
    /// allow, with FBDT's own scheduler.
    ///
    /// # Errors
    /// A configuration that can't work, field by field; one that names another scheduler.
    pub fn new(
        now: Instant,
        role: Role,
        config: Config,
        peer_limits: Limits,
    ) -> Result<Self, ConfigError> {
        Self::with_scheduler(now, role, config, peer_limits, Box::new(JustInTime))
    }

    /// A session without paths, with the scheduler that `config` names.
    ///
    /// # Errors
    /// A configuration that can't work, field by field; one that names another scheduler.
    pub fn with_scheduler(
        now: Instant,
        role: Role,
        config: Config,
        peer_limits: Limits,
        scheduler: Box<dyn Scheduler>,
    ) -> Result<Self, ConfigError> {
        config.validate()?;
        config.validate_scheduler(scheduler.name())?;
        peer_limits.validate()?;
        let mut session = Self {
            role,
            paths: Vec::new(),
            why_idle: Vec::new(),
            appetites: Vec::new(),
            streams: BTreeMap::new(),
            busy: Turns::default(),
            clock: Clock::default(),
            with_messages: false,
            talking: BTreeSet::new(),
            near_limit: BTreeSet::new(),
            counts: StreamCounts {
                local: 0,
                local_limit: u64::from(peer_limits.max_streams),
                peer_limit: u64::from(config.limits.max_streams),
                peer: 0,
                peer_seen: RangeSet::new(),
                peer_closed: 0,
            },
            credit: SessionCredit {
                send_limit: peer_limits.session_window,
                receive_limit: config.limits.session_window,
                ..SessionCredit::default()
            },
            totals: Totals::default(),
            peer_limits,
            needs: scheduler.needs(),
            scheduler,
            coupling: coupling(&config),
            control_input: Vec::new(),
            memory: 0,
            room: u64::MAX,
            events: VecDeque::new(),
            close: None,
            leaves_at: None,
            peer_left: None,
            left_behind: 0,
            next_subflow: 0,
            all_down_since: Some(now),
            last_buffer_check: now,
            last_overdue_check: now,
            tick: now,
            carried: (0, now),
            news: 0,
            config,
        };
        let control = session.new_stream(StreamId::CONTROL, Class::Conversational);
        session.add_stream(StreamId::CONTROL, control);
        Ok(session)
    }

    /// Both ends speak version 2 of the wire format: there are messages (F16). To be told before
    /// the first frame.
    #[must_use]
    pub const fn with_messages(mut self) -> Self {
        self.with_messages = true;
        self
    }

    /// Which end this is.
    #[must_use]
    pub const fn role(&self) -> Role {
        self.role
    }

    /// What the session was configured with.
    #[must_use]
    pub const fn config(&self) -> &Config {
        &self.config
    }

    /// The next thing that the driver or the application should know.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Ends the session; the peer is told on every path.
    pub fn close(&mut self, _now: Instant, code: u32, reason: &str) {
        self.end(CloseReason::Local { code, reason: reason.into() });
    }

    /// Whether the session is over.
    #[must_use]
    pub const fn is_closed(&self) -> bool {
        self.close.is_some()
    }

    /// Why the session is over.
    #[must_use]
    pub const fn close_reason(&self) -> Option<&CloseReason> {
        self.close.as_ref()
    }

    fn end(&mut self, reason: CloseReason) {
        if self.close.is_some() {
            return;
        }
        self.left_behind = self.undelivered();
        for (&id, stream) in &mut self.streams {
            // What has arrived whole can still be read to its true end.
            if !stream.receive.is_complete() {
                stream.receive.discard();
            }
            stream.recount(&mut self.memory);
            if id != StreamId::CONTROL {
                self.events.push_back(Event::Readable(id));
                self.events.push_back(Event::Writable(id));
                if stream.messages.is_some() {
                    self.events.push_back(Event::MessageReadable(id));
                    self.events.push_back(Event::MessageWritable(id));
                }
            }
        }
        self.busy.clear();
        self.talking.clear();
        self.near_limit.clear();
        self.events.push_back(Event::Closed(reason.clone()));
        self.close = Some(reason);
    }
}
