//! The `sumrate` command: several internet links at the same time; when one drops, the others carry on.
//!
//! In the order in which data meets them: `args` is what the user wrote, `commands` what is done with
//! it; a connection comes in through `proxy`, travels on a stream of a `tunnel` (behind which
//! `session` puts the transport; `sessions` are all that a client has) after a word of the `service`
//! protocol, and leaves through `exit`; `relay` copies its bytes on both ends, `classes` says how
//! urgent they are; `capture` brings in connections that were meant for no proxy. `files` copies files
//! over such a stream, `bench` measures, `flows` counts datagrams, `refusals` counts refused
//! destinations, `crowd` has those that are many give way to others, `history` keeps five minutes, `status` reports, `metrics` and `web` report to
//! Prometheus and browsers, `config` fills in what the command line leaves out, `doctor` looks
//! at the machine.

pub mod args;
pub mod bench;
pub(crate) mod capture;
pub mod classes;
pub mod commands;
pub mod config;
pub mod control;
pub mod doctor;
pub mod eventlog;
pub mod exit;
pub mod explain;
pub mod files;
pub mod flows;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
pub mod history;
pub mod metrics;
pub mod policy;
pub mod proxy;
pub mod refusals;
pub mod relay;
pub mod service;
pub mod session;
pub mod sessions;
pub mod status;
pub mod top;
pub mod tunnel;
pub mod web;

pub mod coupling;
pub mod crowd;
pub mod descriptors;
pub mod interfaces;
pub mod interrupt;
mod logging;
pub mod output;
pub mod private_directory;
pub mod private_text;
pub mod privileges;
pub mod socket;
pub mod spare_memory;
pub mod systemd;
pub mod units;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::FromArgMatches;

use args::{Cli, Command, HelpWords};
use commands::CommandError;
use config::ConfigSource;

/// Parses a command line with what the configuration file adds, carries it out, and gives the exit code.
///
/// `before_sleep` is called by each thread that has nothing to do, before it waits.
pub fn run(arguments: impl IntoIterator<Item = OsString>, before_sleep: fn()) -> ExitCode {
    let words = args::help_words(arguments.into_iter().collect());
    let cli = match parse(words) {
        Ok(cli) => cli,
        Err(code) => return code,
    };
    let mut command = cli.command;
    if let Command::Link(command) = command {
        if cli.json {
            output::print_error("sumrate: give --json after the `link` command that it is for");
            return ExitCode::from(2);
        }
        return sumrate_link::run(command);
    }
    logging::start(cli.verbose, cli.log_format);
    let json = json_flag(&mut command).is_some_and(|flag| {
        *flag |= cli.json;
        *flag
    });
    match commands::prepare(&mut command).and_then(|()| execute(command, before_sleep)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            report_error(&error, json);
            ExitCode::from(error.exit_code())
        }
    }
}

/// The whole command line, or the exit code after saying what is wrong with it.
fn parse(HelpWords { arguments, is_all }: HelpWords) -> Result<Cli, ExitCode> {
    let merged = config::merge(arguments.clone(), config::default_path).map_err(|error| {
        let error = CommandError::from(error);
        report_error(&error, arguments.iter().any(|argument| argument == "--json"));
        ExitCode::from(error.exit_code())
    })?;
    let parsed = args::declaration(is_all).try_get_matches_from(&merged.arguments);
    let parsed = parsed.and_then(|matches| Ok((Cli::from_arg_matches(&matches)?, matches)));
    let (mut cli, matches) = parsed.map_err(|error| {
        let error = args::without_passwords(error);
        // Help and version go to stdout and are no failure.
        let plain = error.render().to_string();
        match output::plain_lines(&output::without_secrets(&plain)) {
            harmless if harmless == plain => drop(error.print()),
            redacted => output::print_error(redacted.trim_end()),
        }
        if let Some(advice) = args::advice(&error) {
            output::print_error(advice);
        }
        for origin in merged.origins(&plain) {
            output::print_error(&origin);
        }
        ExitCode::from(if error.use_stderr() { 2 } else { 0 })
    })?;
    let source = ConfigSource::new(arguments, matches);
    match &mut cli.command {
        Command::Serve(args) => args.daemon.source = source,
        Command::Up(args) => args.daemon.source = source,
        Command::Cp(args) => args.source = source,
        _ => {}
    }
    Ok(cli)
}

fn execute(command: Command, before_sleep: fn()) -> Result<(), CommandError> {
    if let Command::Run(args) = &command {
        // What it becomes inherits limits and threads' traces: there are none yet.
        return commands::run(args).map(|never| match never {});
    }
    descriptors::raise_limit();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .on_thread_park(before_sleep)
        .build()?;
    let outcome = runtime.block_on(async {
        match command {
            Command::Serve(args) => commands::serve(*args).await,
            Command::Up(args) => commands::up(*args).await,
            Command::Bench(args) => commands::bench(args).await,
            Command::Status(args) => commands::status(args).await,
            Command::Top(args) => commands::top(args).await,
            Command::Explain(args) => commands::explain(args).await,
            Command::Path(args) => commands::path(args).await,
            Command::Credential(args) => commands::credential(&args),
            Command::Cp(args) => commands::cp(args).await,
            Command::Reload(args) => commands::reload(args).await,
            Command::Doctor(args) => commands::doctor(&args).await,
            Command::Config(args) => commands::config(&args),
            Command::Cc(args) => commands::cc(&args),
            Command::Man(args) => commands::man(&args),
            Command::Completions(args) => commands::completions(&args),
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
        Command::Cp(args) => Some(&mut args.json),
        Command::Reload(args) => Some(&mut args.json),
        Command::Doctor(args) => Some(&mut args.json),
        Command::Config(args) => Some(&mut args.json),
        Command::Cc(args) => Some(&mut args.json),
        Command::Man(args) => Some(&mut args.json),
        Command::Completions(_) | Command::Link(_) => None,
    }
}

fn report_error(error: &CommandError, json: bool) {
    if matches!(error, CommandError::Interrupted(_)) {
        return;
    }
    let report = error.report();
    output::print_error(&format!("sumrate: {}", report.message));
    if json {
        let _ = output::json(&report);
    }
}
