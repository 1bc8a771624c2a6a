//! What the service manager is told: ready, reloading, stopping (sd_notify(3)). Nothing happens where
//! none asked for it.

use sd_notify::{NotifyState, notify};

/// Work can begin; also the end of a reload.
pub fn ready() {
    tell(&[NotifyState::Ready]);
}

/// The configuration is read again.
pub fn reloading() {
    match NotifyState::monotonic_usec_now() {
        Ok(now) => tell(&[NotifyState::Reloading, now]),
        Err(_) => tell(&[NotifyState::Reloading]),
    }
}

/// Streams are finished before the end.
pub fn stopping() {
    tell(&[NotifyState::Stopping]);
}

fn tell(states: &[NotifyState<'_>]) {
    if let Err(error) = notify(states) {
        tracing::debug!(%error, "the service manager was not told");
    }
}
