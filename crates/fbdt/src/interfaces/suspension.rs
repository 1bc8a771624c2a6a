//! News that the machine was suspended, from a timer that the kernel cancels then.

use std::future::pending;
use std::io;
use std::os::fd::AsFd;
use std::time::Duration;

use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// The timer never ends by itself: the year 2100 or later.
const NEVER: Duration = Duration::from_secs(4_102_444_800);

/// Tells when the machine may have been suspended; also that its wall clock was set, which is no news.
pub(crate) struct SuspensionWatch {
    timer: Option<TimerFd>,
}

impl SuspensionWatch {
    /// Starts watching; where there is no such timer, nothing is told.
    pub(crate) fn start() -> Self {
        let timer = timer()
            .inspect_err(
                |error| tracing::warn!(%error, "no timer tells that the machine was suspended"),
            )
            .ok();
        Self { timer }
    }

    /// Waits until the machine may have been suspended.
    pub(crate) async fn over(&mut self) {
        let Some(timer) = &self.timer else { return pending().await };
        if let Err(error) = cancelled(timer).await {
            tracing::warn!(%error, "no timer tells any more that the machine was suspended");
            self.timer = None;
        }
    }
}

fn timer() -> io::Result<TimerFd> {
    let flags = TimerFlags::TFD_NONBLOCK | TimerFlags::TFD_CLOEXEC;
    let timer = TimerFd::new(ClockId::CLOCK_REALTIME, flags)?;
    arm(&timer)?;
    Ok(timer)
}

fn arm(timer: &TimerFd) -> io::Result<()> {
    let flags = TimerSetTimeFlags::TFD_TIMER_ABSTIME | TimerSetTimeFlags::TFD_TIMER_CANCEL_ON_SET;
    Ok(timer.set(Expiration::OneShot(TimeSpec::from_duration(NEVER)), flags)?)
}

/// Waits until the kernel cancels the timer, and sets it again.
async fn cancelled(timer: &TimerFd) -> io::Result<()> {
    // SAFETY: the descriptor is borrowed for longer than its registration lasts.
    #[allow(unsafe_code)]
    let watched = unsafe { AsyncFd::register_with_interest(timer.as_fd(), Interest::READABLE) }?;
    watched.readable().await?.retain_ready();
    // Takes the news: setting a cancelled timer fails otherwise.
    timer.wait()?;
    arm(timer)
}
