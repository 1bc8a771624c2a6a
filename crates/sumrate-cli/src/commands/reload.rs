//! `sumrate reload`.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::CommandError;
use super::status::only_socket;
use crate::args::ReloadArgs;
use crate::output;
use crate::status::{ReloadReport, ask, ask_process};

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
    #[error("process {0} is of an older version that cannot reload: restart it")]
    CannotReload(u32),
    /// Another one answers than it says.
    #[error(
        "process {answers} serves {socket} and says that it is process {named}: nothing was signalled; where it runs in another namespace of processes, reload it there"
    )]
    OtherProcess {
        /// The socket.
        socket: PathBuf,
        /// The number that it says.
        named: u32,
        /// Its number; 0 where it has none here.
        answers: i32,
    },
    /// It may not be signalled.
    #[error("process {pid} cannot be told to reload: {error}; run this as its user or as root")]
    Signal {
        /// The process.
        pid: u32,
        /// What the system said.
        error: io::Error,
    },
    /// What it read is wrong.
    #[error("nothing was changed: {0}")]
    WrongConfiguration(String),
    /// What it read asks for what cannot be had now.
    #[error("nothing was changed: {0}")]
    Refused(String),
    /// It does not say how it went.
    #[error("process {0} has not reloaded within 40 s; see its log")]
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
    let (before, process) = ask_process(&socket).await?;
    let (pid, answers) = (before.pid, process.id());
    if i32::try_from(pid) != Ok(answers) {
        return Err(ReloadError::OtherProcess { socket, named: pid, answers }.into());
    }
    let count = before.reload.ok_or(ReloadError::CannotReload(pid))?.count;
    process.hang_up().map_err(|error| ReloadError::Signal { pid, error })?;
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

fn print(answer: &ReloadAnswer) -> io::Result<()> {
    let list = |flags: &[String]| match flags {
        [] => "nothing: no setting has changed".to_owned(),
        flags => flags.join(", "),
    };
    output::line(&format!("process {}: applied {}", answer.pid, list(&answer.applied)))?;
    if answer.needs_restart.is_empty() {
        return Ok(());
    }
    output::line(&format!("needs a restart: {}", list(&answer.needs_restart)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status::{STATUS_SCHEMA, StatusReport, StatusSocket};
    use std::os::unix::process::ExitStatusExt;
    use std::process::{Command, Stdio};

    #[tokio::test]
    async fn a_report_that_names_another_process_signals_nobody() {
        let directory = tempfile::tempdir().unwrap();
        let socket = directory.path().join("up.sock");
        let served = StatusSocket::bind(Some(&socket), "").unwrap();
        // It ends when its input does.
        let mut other = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        let named = other.id();
        let report = || async {
            StatusReport {
                schema: STATUS_SCHEMA.to_owned(),
                pid: named,
                reload: Some(ReloadReport::default()),
                ..StatusReport::default()
            }
        };
        let outcome = tokio::select! {
            outcome = reload(ReloadArgs { socket: Some(socket), json: false }) => outcome,
            () = served.serve(report) => unreachable!(),
        };
        drop(other.stdin.take());
        let ended = other.wait().unwrap();
        assert_eq!((ended.code(), ended.signal()), (Some(0), None));
        let error = outcome.unwrap_err();
        let own = i32::try_from(std::process::id()).unwrap();
        let CommandError::Reload(ReloadError::OtherProcess { answers, .. }) = error else {
            panic!("{error}");
        };
        assert_eq!(answers, own);
    }
}
