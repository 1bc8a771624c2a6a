//! `sumrate explain`.

use super::{CommandError, status};
use crate::args::ExplainArgs;
use crate::explain::{ExplainReport, explain as explained};
use crate::interrupt::{Interrupt, Interrupts};
use crate::output;
use crate::status::{ask, label};

/// Asks twice and explains the difference.
///
/// # Errors
/// [`CommandError`]
pub async fn explain(args: ExplainArgs) -> Result<(), CommandError> {
    let mut interrupts = Interrupts::new()?;
    let socket = status::socket(args.socket.as_deref()).await?;
    let before = ask(&socket).await?;
    tokio::select! {
        () = tokio::time::sleep(args.watch) => {}
        interrupt = interrupts.next() => return match interrupt {
            Interrupt::Interrupted => Err(CommandError::Interrupted(interrupt)),
            Interrupt::Terminated => Ok(()),
        },
    }
    let mut report = explained(&before, &ask(&socket).await?);
    if let Some(name) = &args.path {
        if !report.paths.iter().any(|path| path.name == *name) {
            let known: Vec<_> = report.paths.iter().map(|path| path.name.clone()).collect();
            return Err(CommandError::UnknownPath { name: name.clone(), known: known.join(", ") });
        }
        report.paths.retain(|path| path.name == *name);
    }
    if args.json {
        return Ok(output::pretty_json(&report)?);
    }
    Ok(output::line(&text(&report))?)
}

/// A paragraph a path; what tells its session from others in front where there are several.
fn text(report: &ExplainReport) -> String {
    let mut sessions: Vec<&str> = report.paths.iter().map(|path| path.session.as_str()).collect();
    sessions.dedup();
    let mut paragraphs = report.sentences.clone();
    for path in &report.paths {
        let session = if sessions.len() > 1 {
            format!("[{}] ", label(&path.session, path.credential.as_deref()))
        } else {
            String::new()
        };
        let mut sentences = path.sentences.iter();
        let first = sentences.next().cloned().unwrap_or_default();
        let rest: Vec<String> = sentences.map(|sentence| format!("  {sentence}")).collect();
        paragraphs.push([vec![format!("{session}{first}")], rest].concat().join("\n"));
    }
    paragraphs.join("\n")
}
