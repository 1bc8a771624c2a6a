//! `sumrate top`.

use std::io::IsTerminal;
use std::time::Duration;

use fbdt_proto::plain_text::plain;

use super::{CommandError, SetupError, status};
use crate::args::TopArgs;
use crate::history::ask_history;
use crate::interrupt::{Interrupt, Interrupts};
use crate::output;
use crate::status::ask;
use crate::top::{Input, Terminal, TopState};

/// Shows the status until the user leaves.
///
/// # Errors
/// [`CommandError`]
pub async fn top(args: TopArgs) -> Result<(), CommandError> {
    if !args.json && !std::io::stdout().is_terminal() {
        return Err(SetupError::NoTerminal.into());
    }
    let mut interrupts = Interrupts::new()?;
    let socket = status::socket(args.socket.as_deref()).await?;
    let mut state = TopState::default();
    let mut terminal = if args.json { None } else { Some(Terminal::take()?) };
    let mut ticks = tokio::time::interval(args.interval.max(Duration::from_millis(100)));
    loop {
        tokio::select! {
            _ = ticks.tick() => match (ask(&socket).await, &terminal) {
                (Ok(report), None) => {
                    if !output::is_json_read(&report)? {
                        return Ok(());
                    }
                }
                (Err(error), None) => return Err(error.into()),
                // A process of an earlier version has no history.
                (Ok(report), Some(_)) => state.update(report, ask_history(&socket).await.ok()),
                (Err(error), Some(_)) => state.error = Some(plain(&error.to_string())),
            },
            input = input(&mut terminal) => match input {
                Some(Input::Key(key)) if !state.press(key) => return Ok(()),
                Some(Input::Interrupt) => {
                    return Err(CommandError::Interrupted(Interrupt::Interrupted));
                }
                None => return Ok(()),
                _ => {}
            },
            interrupt = interrupts.next() => return match interrupt {
                Interrupt::Interrupted => Err(CommandError::Interrupted(interrupt)),
                Interrupt::Terminated => Ok(()),
            },
        }
        if let Some(terminal) = &mut terminal {
            terminal.show(&state)?;
        }
    }
}

async fn input(terminal: &mut Option<Terminal>) -> Option<Input> {
    match terminal {
        Some(terminal) => terminal.next().await,
        None => std::future::pending().await,
    }
}
