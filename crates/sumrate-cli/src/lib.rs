//! The `sumrate` command: every radio you have, added up, and never worse than the best one.
//!
//! In the order in which data meets them: `args` is what the user wrote, `commands` what is done with
//! it; a connection comes in through `proxy`, travels on a stream of a `tunnel` (behind which
//! `session` puts the transport) after a word of the `service` protocol, and leaves through `exit`;
//! `relay` copies its bytes on both ends, `classes` says how urgent they are; `capture` brings in
//! connections that were meant for no proxy. `bench` measures, `status` tells; `metrics` and `web` tell
//! it to Prometheus and browsers.

pub mod args;
pub mod bench;
pub(crate) mod capture;
pub mod classes;
pub mod commands;
pub mod control;
pub mod eventlog;
pub mod exit;
pub mod explain;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
pub mod metrics;
pub mod policy;
pub mod proxy;
pub mod relay;
pub mod service;
pub mod session;
pub mod status;
pub mod top;
pub mod tunnel;
pub mod web;

pub mod coupling;
pub mod descriptors;
pub mod interfaces;
pub mod interrupt;
pub mod output;
pub mod privileges;
pub mod socket;

use std::ffi::OsString;
use std::io::{IsTerminal, Write};
use std::process::ExitCode;

use clap::Parser;
use tracing_subscriber::EnvFilter;

use args::{Cli, Command};
use commands::CommandError;

/// Parses a command line, carries it out, and gives the exit code.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let cli = match Cli::try_parse_from(arguments) {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version go to stdout and are no failure.
            let plain = error.render().to_string();
            let _ = match output::without_secrets(&plain) {
                harmless if harmless == plain => error.print(),
                redacted => write!(std::io::stderr(), "{redacted}"),
            };
            return ExitCode::from(if error.use_stderr() { 2 } else { 0 });
        }
    };
    let mut command = cli.command;
    if let Command::Link(command) = command {
        if cli.json {
            let advice = "sumrate: give --json after the `link` command that it is for";
            let _ = writeln!(std::io::stderr(), "{advice}");
            return ExitCode::from(2);
        }
        return sumrate_link::run(command);
    }
    start_logging(cli.verbose);
    let json = json_flag(&mut command).is_some_and(|flag| {
        *flag |= cli.json;
        *flag
    });
    match commands::prepare(&mut command).and_then(|()| execute(command)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            report_error(&error, json);
            ExitCode::from(error.exit_code())
        }
    }
}

fn execute(command: Command) -> Result<(), CommandError> {
    if let Command::Run(args) = &command {
        // What it becomes inherits limits and threads' traces: there are none yet.
        return commands::run(args).map(|never| match never {});
    }
    descriptors::raise_limit();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let outcome = runtime.block_on(async {
        match command {
            Command::Serve(args) => commands::serve(args).await,
            Command::Up(args) => commands::up(*args).await,
            Command::Bench(args) => commands::bench(args).await,
            Command::Status(args) => commands::status(args).await,
            Command::Top(args) => commands::top(args).await,
            Command::Explain(args) => commands::explain(args).await,
            Command::Path(args) => commands::path(args).await,
            Command::Credential(args) => commands::credential(&args),
            Command::Cc(args) => commands::cc(&args),
            Command::Run(_) | Command::Link(_) => Ok(()),
        }
    });
    // A name that is being looked up must not hold the process up.
    runtime.shutdown_background();
    outcome
}

/// The command's own flag.
fn json_flag(command: &mut Command) -> Option<&mut bool> {
    match command {
        Command::Serve(args) => Some(&mut args.json),
        Command::Up(args) => Some(&mut args.json),
        Command::Run(args) => Some(&mut args.json),
        Command::Bench(args) => Some(&mut args.json),
        Command::Status(args) => Some(&mut args.json),
        Command::Top(args) => Some(&mut args.json),
        Command::Explain(args) => Some(&mut args.json),
        Command::Path(args) => Some(&mut args.json),
        Command::Credential(args) => Some(&mut args.json),
        Command::Cc(args) => Some(&mut args.json),
        Command::Link(_) => None,
    }
}

fn report_error(error: &CommandError, json: bool) {
    if matches!(error, CommandError::Interrupted(_)) {
        return;
    }
    let report = error.report();
    let _ = writeln!(std::io::stderr(), "sumrate: {}", report.message);
    if json {
        let _ = output::json(&report);
    }
}

/// Logs to stderr: SUMRATE_LOG decides, else the number of `-v`.
fn start_logging(verbose: u8) {
    let level = ["warn", "info", "debug", "trace"][usize::from(verbose.min(3))];
    let filter = EnvFilter::try_from_env("SUMRATE_LOG").unwrap_or_else(|_| EnvFilter::new(level));
    let _ = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .try_init();
}
