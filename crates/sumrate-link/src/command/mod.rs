//! The command line.

mod calibrate;
mod control;
mod import;
mod run;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Subcommand};

use crate::config::Directions;

/// Exit code of a measurement that failed.
pub const MEASURED_FAILURE: u8 = 1;
/// Exit code of wrong usage or configuration.
pub const USAGE: u8 = 2;
/// Exit code of a missing privilege.
pub const PRIVILEGE: u8 = 3;

/// Emulated links between network namespaces.
#[derive(Debug, Subcommand)]
pub enum LinkCommand {
    /// Bring links up and run them until SIGINT or SIGTERM.
    #[command(
        after_help = "Example:\n  unshare -Urnm sh -c 'mount -t tmpfs none /run && mkdir /run/netns && ip netns add client && \\\n    ip netns add server && exec sumrate-link run links.toml --control /tmp/link.sock'"
    )]
    Run(RunArgs),
    /// Change parameters of a running emulator.
    #[command(
        after_help = "Example:\n  sumrate-link set --control /tmp/link.sock wifi both rate_mbps=300 loss=0.05 blackout=false"
    )]
    Set(SetArgs),
    /// Begin the schedules that wait for a trigger, now.
    #[command(after_help = "Example:\n  sumrate-link trigger --control /tmp/link.sock")]
    Trigger(ControlArgs),
    /// Print a running emulator's counters as JSON.
    #[command(after_help = "Example:\n  sumrate-link stats --control /tmp/link.sock --reset")]
    Stats(StatsArgs),
    /// Bring links up, measure them in both directions and compare with what is set.
    #[command(
        after_help = "Example (inside `unshare -Urnm` with the namespaces made):\n  sumrate-link calibrate links.toml --json"
    )]
    Calibrate(CalibrateArgs),
    /// Convert a trace of another tool; prints the native format.
    #[command(
        after_help = "Example:\n  sumrate-link import mahimahi Verizon-LTE-driving.down > lte.trace"
    )]
    Import(ImportArgs),
}

/// Arguments of `run`.
#[derive(Debug, Args)]
pub struct RunArgs {
    /// Configuration (TOML, version 1).
    pub config: PathBuf,
    /// Unix socket for `set`, `trigger` and `stats`.
    #[arg(long, value_name = "PATH")]
    pub control: Option<PathBuf>,
    /// Writes the counters there at the end, as JSON.
    #[arg(long, value_name = "FILE")]
    pub stats: Option<PathBuf>,
    /// Makes this file when the links are up.
    #[arg(long, value_name = "FILE")]
    pub ready: Option<PathBuf>,
    /// Replaces the seed of the configuration.
    #[arg(long)]
    pub seed: Option<u64>,
    /// Prints the counters at the end, as JSON.
    #[arg(long)]
    pub json: bool,
}

/// Where the emulator listens.
#[derive(Debug, Args)]
pub struct ControlArgs {
    /// The socket given to `run --control`.
    #[arg(long, value_name = "PATH")]
    pub control: PathBuf,
    /// Prints the answer as JSON.
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `set`.
#[derive(Debug, Args)]
pub struct SetArgs {
    /// Where the emulator listens.
    #[command(flatten)]
    pub control: ControlArgs,
    /// Name of the link.
    pub link: String,
    /// a_to_b, b_to_a or both.
    pub direction: Directions,
    /// rate_mbps, trace, burst_bytes, policer, delay_ms, jitter_ms, jitter_sd_ms, reorder, gather_ms, queue_ms,
    /// queue_packets, loss, loss_burst, blackout, hold.
    #[arg(required = true, value_name = "KEY=VALUE")]
    pub parameters: Vec<String>,
}

/// Arguments of `stats`.
#[derive(Debug, Args)]
pub struct StatsArgs {
    /// Where the emulator listens.
    #[command(flatten)]
    pub control: ControlArgs,
    /// Begin a new measurement of lateness afterwards.
    #[arg(long)]
    pub reset: bool,
}

/// Arguments of `calibrate`.
#[derive(Debug, Args)]
pub struct CalibrateArgs {
    /// Configuration (TOML, version 1). Schedules, blackouts, holds, bursts, policers and gathering are left out.
    pub config: PathBuf,
    /// Seconds that each rate is measured; a loss takes up to four times as long.
    #[arg(long, value_name = "S", default_value_t = 1.5)]
    pub duration: f64,
    /// Prints the measurements as JSON.
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `import`.
#[derive(Debug, Args)]
pub struct ImportArgs {
    /// Format of the file.
    #[arg(value_enum)]
    pub format: ImportFormat,
    /// The file; "-": standard input.
    pub file: PathBuf,
    /// Prints what was read as JSON instead: duration and mean rate.
    #[arg(long)]
    pub json: bool,
}

/// Formats that can be imported.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub enum ImportFormat {
    /// One line per 1500-byte delivery opportunity, in milliseconds.
    Mahimahi,
}

/// Runs a command. Exit codes: 0 done, 1 measured failure, 2 usage or configuration, 3 missing privilege.
pub fn run(command: LinkCommand) -> ExitCode {
    let result = match command {
        LinkCommand::Run(arguments) => run::run(&arguments),
        LinkCommand::Set(arguments) => control::set(&arguments),
        LinkCommand::Trigger(arguments) => control::trigger(&arguments),
        LinkCommand::Stats(arguments) => control::stats(&arguments),
        LinkCommand::Calibrate(arguments) => calibrate::run(&arguments),
        LinkCommand::Import(arguments) => import::import(&arguments),
    };
    match result {
        Ok(code) => code,
        Err(failure) => {
            eprintln!("sumrate-link: {}", failure.message);
            ExitCode::from(failure.code)
        }
    }
}

/// An error on its way out: its message and the exit code.
#[derive(Debug)]
struct Failure {
    message: String,
    code: u8,
}

impl Failure {
    fn new(code: u8, error: impl std::fmt::Display) -> Failure {
        Failure { message: error.to_string(), code }
    }

    fn usage(error: impl std::fmt::Display) -> Failure {
        Failure::new(USAGE, error)
    }
}

impl From<crate::interfaces::SetupError> for Failure {
    fn from(error: crate::interfaces::SetupError) -> Failure {
        let code = if error.is_privilege() { PRIVILEGE } else { USAGE };
        Failure::new(code, error)
    }
}

/// Prints a line; a closed pipe is not an error.
fn print(text: &str) {
    use std::io::Write as _;
    let mut out = std::io::stdout().lock();
    let _ = writeln!(out, "{text}").and_then(|()| out.flush());
}
