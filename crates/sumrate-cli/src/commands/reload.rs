//! `sumrate reload`.

use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde::{Deserialize, Serialize};

use super::CommandError;
use super::status::only_socket;
use crate::args::ReloadArgs;
use crate::output;
use crate::status::{ReloadReport, ask};

/// Name and version of the JSON form.
pub const RELOAD_SCHEMA: &str = "sumrate.reload.v1";
/// Time between two looks at how it went.
const LOOK: Duration = Duration::from_millis(50);
/// Longest time for it, a new session to the server included.
const PATIENCE: Duration = Duration::from_secs(40);

/// Why a process did not reload.
#[derive(Debug, thiserror::Error)]
pub enum ReloadError {
    /// An older program.
    #[error("process {0} is of a version that cannot reload: restart it")]
    CannotReload(u32),
    /// It may not be signalled.
    #[error("process {pid} cannot be told to reload: {errno}; run this as its user or as root")]
    Signal {
        /// The process.
        pid: u32,
        /// What the system said.
        errno: nix::errno::Errno,
    },
    /// What it read is wrong.
    #[error("nothing was changed: {0}")]
    WrongConfiguration(String),
    /// What it read asks for what cannot be had now.
    #[error("nothing was changed: {0}")]
    Refused(String),
    /// It does not say how it went.
    #[error("process {0} has not reloaded within 40 s; its log says why")]
    Silent(u32),
}

/// What a reload did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReloadAnswer {
    /// [`RELOAD_SCHEMA`].
    pub schema: String,
    /// The process.
    pub pid: u32,
    /// Flags whose new values count from now on, by long name.
    pub applied: Vec<String>,
    /// Flags whose new values count after a restart.
    pub needs_restart: Vec<String>,
}

/// Tells a daemon to read its configuration again, and waits until it has.
///
/// # Errors
/// [`CommandError`]
pub async fn reload(args: ReloadArgs) -> Result<(), CommandError> {
    let socket = match args.socket {
        Some(socket) => socket,
        None => only_socket().await?,
    };
    let before = ask(&socket).await?;
    let pid = before.pid;
    let count = before.reload.ok_or(ReloadError::CannotReload(pid))?.count;
    let target = i32::try_from(pid).map_err(|_| ReloadError::CannotReload(pid))?;
    kill(Pid::from_raw(target), Signal::SIGHUP)
        .map_err(|errno| ReloadError::Signal { pid, errno })?;
    let done = async {
        loop {
            match ask(&socket).await?.reload {
                Some(report) if report.count > count => return Ok::<_, CommandError>(report),
                _ => tokio::time::sleep(LOOK).await,
            }
        }
    };
    let report =
        tokio::time::timeout(PATIENCE, done).await.map_err(|_| ReloadError::Silent(pid))??;
    let ReloadReport { applied, needs_restart, error, wrong_configuration, .. } = report;
    if let Some(error) = error {
        let kind = if wrong_configuration {
            ReloadError::WrongConfiguration
        } else {
            ReloadError::Refused
        };
        return Err(kind(error).into());
    }
    let answer = ReloadAnswer { schema: RELOAD_SCHEMA.to_owned(), pid, applied, needs_restart };
    if args.json {
        output::pretty_json(&answer)?
    } else {
        print(&answer)?
    }
    Ok(())
}

fn print(answer: &ReloadAnswer) -> std::io::Result<()> {
    let list = |flags: &[String]| match flags {
        [] => "nothing".to_owned(),
        flags => flags.join(", "),
    };
    output::line(&format!("process {}: changed {}", answer.pid, list(&answer.applied)))?;
    if answer.needs_restart.is_empty() {
        return Ok(());
    }
    output::line(&format!("waits for a restart: {}", list(&answer.needs_restart)))
}
