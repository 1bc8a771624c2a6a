//! What a session can be told before it starts.

mod budget;
mod scheduler;

pub use budget::Budget;
pub use scheduler::{CommitRule, SchedulerKind};

use alloc::string::String;
use core::time::Duration;

use fbdt_coupling::{CouplingMode, SharedBottleneck, WindowGrowth};
use fbdt_units::Class;
use fbdt_wire::{ConfigError, Limits};

/// How windows follow each other (F5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WindowMode {
    /// Several windows open at once, sized by rate and RTT.
    #[default]
    Pipelined,
    /// The paper's: one window of fixed size at a time.
    Thesis,
}

impl WindowMode {
    /// The name used in flags and reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pipelined => "pipelined",
            Self::Thesis => "thesis",
        }
    }
}

/// When a path sends a second copy of what another path owes (F6).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Redundancy {
    /// When its own copy is expected to arrive first.
    #[default]
    ExpectedArrival,
    /// The paper's: after waiting one RTT of the other side.
    RttWait,
    /// Only what suspect paths owe, as MPTCP reinjects after a timeout.
    Suspect,
    /// Never; only bytes of closed subflows are sent again.
    Off,
}

impl Redundancy {
    /// The name used in flags and reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::ExpectedArrival => "expected-arrival",
            Self::RttWait => "rtt-wait",
            Self::Suspect => "suspect",
            Self::Off => "off",
        }
    }
}

/// Everything that shapes a session. `Default` is what measures best.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Which bytes a path sends next.
    pub scheduler: SchedulerKind,
    /// Up to what a path takes bytes.
    pub commit: CommitRule,
    /// What paths over one bottleneck take together (F17).
    pub coupling: CouplingMode,
    /// How this end's subflows' windows move (F14, F17).
    pub window_growth: WindowGrowth,
    /// How windows follow each other.
    pub window_mode: WindowMode,
    /// When second copies are sent.
    pub redundancy: Redundancy,
    /// Paths whose send windows are scaled so that together they take what one would (F14).
    pub shared_bottleneck: SharedBottleneck,
    /// Name of the path that is always forward; by reliability if `None`.
    pub forward: Option<String>,
    /// Smallest and largest window of the pipelined mode, in bytes (F2).
    pub window: (u64, u64),
    /// Open windows per stream in the pipelined mode (F5).
    pub window_depth: usize,
    /// Window of the thesis mode, in bytes.
    pub thesis_window: u64,
    /// What copies by choice may cost each class, in the order of [`Class::ALL`] (F11).
    pub class_budgets: [Budget; Class::ALL.len()],
    /// A copy must be expected this many times sooner than the original.
    pub copy_margin: f64,
    /// What this end is willing to hold.
    pub limits: Limits,
    /// Largest receive window of one stream, in bytes; it grows to this only
    /// if the sender asks and the application keeps up.
    pub max_stream_window: u64,
    /// How long a session lives with all paths down.
    pub linger: Duration,
    /// No acknowledgement for this long (at least) makes a path suspect (F9).
    pub suspect_floor: Duration,
    /// Time's worth of bytes that a path may hold beyond TCP's window (F7).
    pub commit_slack: Duration,
    /// Time's worth of bytes in one frame (F7).
    pub frame_time: Duration,
    /// At most one acknowledgement per path in this time (F8).
    pub ack_interval: Duration,
    /// Silence after which a probe is sent while streams carry bytes, and at
    /// other times: a month of those costs a path less than 20 MB.
    pub keepalive: (Duration, Duration),
}

impl Default for Config {
    fn default() -> Self {
        Self {
            scheduler: SchedulerKind::default(),
            commit: CommitRule::default(),
            coupling: CouplingMode::default(),
            window_growth: WindowGrowth::default(),
            window_mode: WindowMode::default(),
            redundancy: Redundancy::default(),
            shared_bottleneck: SharedBottleneck::default(),
            forward: None,
            window: (256 << 10, 4 << 20),
            window_depth: 4,
            thesis_window: 64 << 10,
            class_budgets: Budget::DEFAULT,
            copy_margin: 1.5,
            limits: Limits::default(),
            max_stream_window: 128 << 20,
            linger: Duration::from_secs(60),
            suspect_floor: Duration::from_millis(50),
            commit_slack: Duration::from_millis(2),
            frame_time: Duration::from_millis(1),
            ack_interval: Duration::from_millis(1),
            keepalive: (Duration::from_millis(250), Duration::from_secs(45)),
        }
    }
}

impl Config {
    /// Largest window of either mode, in bytes.
    pub const MAX_WINDOW: u64 = 1 << 30;

    /// The same with another scheduler and the transport's rules that go with
    /// it.
    #[must_use]
    pub fn with_scheduler(self, scheduler: SchedulerKind) -> Self {
        Self { scheduler, commit: scheduler.commit(), redundancy: scheduler.redundancy(), ..self }
    }

    /// The same with at most `bytes` of every stream that is received held here, or on the way. What
    /// writers may leave unsent is not bounded by it. Frames become small enough that one of them
    /// does not fill it.
    #[must_use]
    pub fn with_stream_buffer(mut self, bytes: u64) -> Self {
        let frame = u32::try_from(bytes / 4).unwrap_or(u32::MAX);
        self.limits.max_frame = self.limits.max_frame.min(frame.max(Limits::MIN_FRAME));
        self.limits.stream_window = self.limits.stream_window.min(bytes);
        self.max_stream_window = bytes;
        self
    }

    /// Checks that a session is given the scheduler that this names.
    pub(crate) fn validate_scheduler(&self, given: &str) -> Result<(), ConfigError> {
        ConfigError::unless(
            self.scheduler.name() == given,
            "scheduler",
            f64::from(self.scheduler as u8),
            "build the session with fbdt_baselines::session, which has every scheduler",
        )
    }

    /// Checks that a session can start with this.
    ///
    /// # Errors
    /// The first field that is out of range, with what to use instead.
    pub fn validate(&self) -> Result<(), ConfigError> {
        self.limits.validate()?;
        ConfigError::unless(
            self.window.0 >= 16 << 10
                && self.window.0 <= self.window.1
                && self.window.1 <= Self::MAX_WINDOW,
            "window",
            self.window.0 as f64,
            "use 16384 bytes to 1 GiB and a maximum that is not below the minimum",
        )?;
        ConfigError::unless(
            (1..=64).contains(&self.window_depth),
            "window_depth",
            self.window_depth as f64,
            "use 1 to 64 open windows",
        )?;
        ConfigError::unless(
            (4 << 10..=Self::MAX_WINDOW).contains(&self.thesis_window),
            "thesis_window",
            self.thesis_window as f64,
            "use 4096 bytes to 1 GiB",
        )?;
        for budget in self.class_budgets {
            ConfigError::unless(
                (0.0..=1.0).contains(&budget.share),
                "class_budgets",
                budget.share,
                "use shares of 0 to 1",
            )?;
        }
        ConfigError::unless(
            self.copy_margin >= 1.0,
            "copy_margin",
            self.copy_margin,
            "use at least 1",
        )?;
        ConfigError::unless(
            self.max_stream_window >= self.limits.stream_window,
            "max_stream_window",
            self.max_stream_window as f64,
            "use at least the window of a new stream",
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scheduler_brings_the_rules_that_it_is_published_with() {
        let config = Config::default();
        assert_eq!(config.clone().with_scheduler(config.scheduler), config);
        let minrtt = config.with_scheduler(SchedulerKind::MinRtt);
        assert_eq!(minrtt.redundancy, Redundancy::Suspect);
        assert_eq!(minrtt.commit, CommitRule::Window);
        let mut names: alloc::vec::Vec<_> = SchedulerKind::ALL.iter().map(|k| k.name()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), SchedulerKind::ALL.len());
    }

    #[test]
    fn a_stream_buffer_bounds_what_is_received() {
        for bytes in [8 << 10, 64 << 10, 1 << 20] {
            let config = Config::default().with_stream_buffer(bytes);
            assert_eq!(config.validate(), Ok(()), "{bytes}");
            assert_eq!(config.max_stream_window, bytes);
            assert!(config.limits.stream_window <= bytes);
            assert!(2 * u64::from(config.limits.max_frame) <= bytes, "{bytes}");
        }
        let bad = Config::default().with_stream_buffer(4 << 10);
        assert_eq!(bad.validate().unwrap_err().field, "stream_window");
    }

    #[test]
    fn defaults_are_valid_and_bad_values_are_named() {
        assert_eq!(Config::default().validate(), Ok(()));
        let bad = Config { window_depth: 0, ..Config::default() };
        assert_eq!(bad.validate().unwrap_err().field, "window_depth");
        let bad =
            Config { limits: Limits { max_frame: 1, ..Limits::default() }, ..Config::default() };
        assert_eq!(bad.validate().unwrap_err().field, "max_frame");
        let bad = Config { window: (1 << 20, u64::MAX), ..Config::default() };
        assert_eq!(bad.validate().unwrap_err().field, "window");
        let bad = Config { thesis_window: u64::MAX, ..Config::default() };
        assert_eq!(bad.validate().unwrap_err().field, "thesis_window");
        let none = Budget { share: f64::NAN, allowance: 0 };
        let bad = Config { class_budgets: [none; Class::ALL.len()], ..Config::default() };
        assert_eq!(bad.validate().unwrap_err().field, "class_budgets");
    }
}
