//! Ctrl-C and SIGTERM; SIGHUP, which asks for a reload.

use tokio::signal::unix::{Signal, SignalKind, signal};

/// What the user or the system asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Interrupt {
    /// Ctrl-C (SIGINT).
    Interrupted,
    /// SIGTERM: an orderly stop.
    Terminated,
}

/// Watches for both signals from its creation on.
#[derive(Debug)]
pub struct Interrupts {
    interrupt: Signal,
    terminate: Signal,
}

impl Interrupts {
    /// Takes the signals over.
    ///
    /// # Errors
    /// What the system says.
    pub fn new() -> std::io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    /// The next one.
    pub async fn next(&mut self) -> Interrupt {
        tokio::select! {
            _ = self.interrupt.recv() => Interrupt::Interrupted,
            _ = self.terminate.recv() => Interrupt::Terminated,
        }
    }
}

/// Watches for SIGHUP from its creation on.
#[derive(Debug)]
pub struct Hangups(Signal);

impl Hangups {
    /// Takes the signal over.
    ///
    /// # Errors
    /// What the system says.
    pub fn new() -> std::io::Result<Self> {
        Ok(Self(signal(SignalKind::hangup())?))
    }

    /// The next one.
    pub async fn next(&mut self) {
        self.0.recv().await;
    }
}
