//! `sumrate status`.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::CommandError;
use crate::args::StatusArgs;
use crate::interrupt::{Interrupt, Interrupts};
use crate::output;
use crate::status::{StatusReport, ask, ask_all, write_table};

/// Time between two questions of `--watch`.
const WATCH: Duration = Duration::from_secs(1);

/// Asks once, or until a signal.
///
/// # Errors
/// [`CommandError`]
pub async fn status(args: StatusArgs) -> Result<(), CommandError> {
    let mut interrupts = Interrupts::new()?;
    let socket = socket(args.socket.as_deref()).await?;
    loop {
        let report = ask(&socket).await?;
        let is_read = print(&report, &args)?;
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

/// The socket that was named, or the only one that answers.
pub(super) async fn socket(named: Option<&Path>) -> Result<PathBuf, CommandError> {
    match named {
        Some(socket) => Ok(socket.to_owned()),
        None => only_socket().await,
    }
}

/// The socket of the only process that answers.
pub(super) async fn only_socket() -> Result<PathBuf, CommandError> {
    let mut answering = ask_all().await?;
    if answering.len() > 1 {
        let names = answering.iter().map(|(socket, _)| socket.display().to_string());
        return Err(CommandError::Ambiguous(names.collect()));
    }
    Ok(answering.swap_remove(0).0)
}

/// Says whether somebody reads it.
fn print(report: &StatusReport, args: &StatusArgs) -> std::io::Result<bool> {
    match (args.json, args.watch) {
        (true, true) => return output::is_json_read(report),
        (true, false) => return output::pretty_json(report).map(|()| true),
        (false, _) => {}
    }
    let mut text = Vec::new();
    if args.watch && std::io::stdout().is_terminal() {
        // Home and clear.
        text.extend_from_slice(b"\x1b[H\x1b[J");
    }
    write_table(&mut text, report)?;
    output::is_read(&text)
}
