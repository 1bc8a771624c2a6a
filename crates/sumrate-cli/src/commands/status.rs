//! `sumrate status`.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::CommandError;
use crate::args::StatusArgs;
use crate::interrupt::{Interrupt, Interrupts};
use crate::output;
use crate::status::{StatusReport, ask, ask_all, identity, write_table};

/// Time between two questions of `--watch`.
const WATCH: Duration = Duration::from_secs(1);

/// Asks once, or until a signal.
///
/// # Errors
/// [`CommandError`]
pub async fn status(args: StatusArgs) -> Result<(), CommandError> {
    let mut interrupts = Interrupts::new()?;
    loop {
        let reports = reports(&args).await?;
        let is_read = print(&reports, &args)?;
        if !args.watch || !is_read {
            return Ok(());
        }
        tokio::select! {
            () = tokio::time::sleep(WATCH) => {}
            interrupt = interrupts.next() => return match interrupt {
                Interrupt::Interrupted => Err(CommandError::Interrupted(interrupt)),
                Interrupt::Terminated => Ok(()),
            },
        }
    }
}

/// The report of the process that was named, or of every process of this user: JSON is of one.
async fn reports(args: &StatusArgs) -> Result<Vec<StatusReport>, CommandError> {
    if let Some(socket) = &args.socket {
        return Ok(vec![ask(socket).await?]);
    }
    let answering = ask_all().await?;
    if args.json && answering.len() > 1 {
        return Err(ambiguous(&answering));
    }
    let mut reports: Vec<StatusReport> = answering.into_iter().map(|(_, report)| report).collect();
    // Clients first.
    reports.sort_by(|a, b| (&a.role, a.pid).cmp(&(&b.role, b.pid)));
    Ok(reports)
}

/// The socket that was named, else that of the only client, else of the only process.
pub(super) async fn socket(named: Option<&Path>) -> Result<PathBuf, CommandError> {
    match named {
        Some(socket) => Ok(socket.to_owned()),
        None => preferred(ask_all().await?),
    }
}

fn preferred(answering: Vec<(PathBuf, StatusReport)>) -> Result<PathBuf, CommandError> {
    let (clients, others): (Vec<_>, Vec<_>) =
        answering.into_iter().partition(|(_, report)| report.role == "client");
    let candidates = if clients.is_empty() { others } else { clients };
    match &candidates[..] {
        [(socket, _)] => Ok(socket.clone()),
        several => Err(ambiguous(several)),
    }
}

/// The socket of the only process that answers.
pub(super) async fn only_socket() -> Result<PathBuf, CommandError> {
    let answering = ask_all().await?;
    match &answering[..] {
        [(socket, _)] => Ok(socket.clone()),
        several => Err(ambiguous(several)),
    }
}

fn ambiguous(answering: &[(PathBuf, StatusReport)]) -> CommandError {
    let line = |(socket, report): &(PathBuf, StatusReport)| {
        format!("--socket {}  {}", socket.display(), identity(report))
    };
    CommandError::Ambiguous(answering.iter().map(line).collect())
}

/// Prints the reports; false where nobody reads any more.
fn print(reports: &[StatusReport], args: &StatusArgs) -> std::io::Result<bool> {
    if args.json {
        for report in reports {
            let is_read = match args.watch {
                true => output::is_json_read(report)?,
                false => output::pretty_json(report).map(|()| true)?,
            };
            if !is_read {
                return Ok(false);
            }
        }
        return Ok(true);
    }
    let mut text = Vec::new();
    for (index, report) in reports.iter().enumerate() {
        if index > 0 {
            text.extend_from_slice(b"\n\n");
        }
        write_table(&mut text, report, args.all)?;
    }
    if args.watch && std::io::stdout().is_terminal() {
        // Home and clear.
        output::print_bytes(b"\x1b[H\x1b[J")?;
    }
    output::is_read(&String::from_utf8_lossy(&text))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(name: &str, role: &str) -> (PathBuf, StatusReport) {
        let report = StatusReport { role: role.to_owned(), ..StatusReport::default() };
        (PathBuf::from(name), report)
    }

    #[test]
    fn the_only_client_is_meant_and_several_are_named_with_the_flag() {
        let (serve, up, other) =
            (answer("s", "server"), answer("u", "client"), answer("v", "client"));
        let chosen = |answers: &[&(PathBuf, StatusReport)]| {
            preferred(answers.iter().map(|answer| (*answer).clone()).collect())
        };
        assert_eq!(chosen(&[&serve]).unwrap(), PathBuf::from("s"));
        assert_eq!(chosen(&[&serve, &up]).unwrap(), PathBuf::from("u"));
        let error = chosen(&[&serve, &up, &other]).unwrap_err().to_string();
        assert!(error.contains("--socket u  Client (process 0)"), "{error}");
        assert!(error.contains("--socket v") && !error.contains("--socket s"), "{error}");
        assert!(chosen(&[&serve, &serve]).is_err());
    }
}
