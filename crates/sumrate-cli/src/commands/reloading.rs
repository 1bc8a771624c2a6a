//! What a running command makes of SIGHUP, for `status` and `reload`.

use std::sync::{Mutex, PoisonError};

use crate::status::ReloadReport;
use crate::systemd;

/// What became of the last reload.
#[derive(Debug, Default)]
pub(super) struct Reloads(Mutex<ReloadReport>);

/// Which flags a reload changed, and which changes wait for a restart; by long names.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Reloaded {
    pub(super) applied: Vec<String>,
    pub(super) needs_restart: Vec<String>,
}

/// Why a reload changed nothing.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unchanged {
    /// What was read is wrong.
    #[error("{0}")]
    Configuration(String),
    /// What it asks for cannot be had now.
    #[error("{0}")]
    Failed(String),
}

impl Reloads {
    /// Notes, logs and tells the service manager how a reload went.
    pub(super) async fn run(&self, reload: impl Future<Output = Result<Reloaded, Unchanged>>) {
        systemd::reloading();
        let result = reload.await;
        match &result {
            Ok(Reloaded { applied, needs_restart }) => {
                tracing::info!(?applied, "configuration reloaded");
                if !needs_restart.is_empty() {
                    tracing::warn!(?needs_restart, "these changes need a restart");
                }
            }
            Err(error) => tracing::warn!("reload failed, nothing changed: {error}"),
        }
        self.note(result);
        systemd::ready();
    }

    fn note(&self, result: Result<Reloaded, Unchanged>) {
        let mut report = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let wrong_configuration = matches!(result, Err(Unchanged::Configuration(_)));
        let (reloaded, error) = match result {
            Ok(reloaded) => (reloaded, None),
            Err(error) => (Reloaded::default(), Some(error.to_string())),
        };
        let (count, Reloaded { applied, needs_restart }) = (report.count + 1, reloaded);
        *report = ReloadReport { count, applied, needs_restart, error, wrong_configuration };
    }

    /// For `sumrate status`.
    pub(super) fn report(&self) -> Option<ReloadReport> {
        Some(self.0.lock().unwrap_or_else(PoisonError::into_inner).clone())
    }
}

/// Those of `changed` that a reload can apply, and the others.
pub(super) fn split(changed: Vec<String>, live: &[&str]) -> (Vec<String>, Vec<String>) {
    changed.into_iter().partition(|flag| live.contains(&flag.as_str()))
}
