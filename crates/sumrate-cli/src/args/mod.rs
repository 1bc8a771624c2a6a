//! Command line: every command and flag is defined here once; help, errors and defaults come from it.

mod bench;
mod capture;
mod cc;
mod config;
mod cp;
mod credential;
mod daemon;
mod doctor;
mod listen;
mod log;
mod manual;
mod observe;
mod path;
mod policy;
mod protocol;
mod reload;
mod run;
mod serve;
mod status;
mod top;
mod up;
mod usage_error;

pub use bench::{BenchArgs, DeliveryArg};
pub use capture::CaptureArgs;
pub use cc::{CcAction, CcArgs};
pub use config::{ConfigAction, ConfigArgs};
pub use cp::CpArgs;
pub use credential::{CredentialAction, CredentialArgs};
pub use daemon::DaemonArgs;
pub use doctor::DoctorArgs;
pub(crate) use listen::same_secret;
pub use listen::{ProxyAddress, ProxyAuth, ProxyAuthError};
pub use log::LogFormat;
pub use manual::{CompletionsArgs, ManArgs};
pub use observe::ObserveArgs;
pub use path::{PathArg, PathArgError, PathBinding};
pub use policy::{ExplainArgs, PathAction, PathCommandArgs, PathSettings, PolicyArg};
pub use protocol::{
    CongestionArg, ProtocolArgs, RedundancyArg, SchedulerArg, SecondsError, WindowModeArg, seconds,
};
pub use reload::ReloadArgs;
pub use run::RunArgs;
pub use serve::ServeArgs;
pub use status::StatusArgs;
pub use top::TopArgs;
pub use up::UpArgs;
pub(crate) use usage_error::without_passwords;

use clap::{ArgAction, Parser, Subcommand};

const EXAMPLE: &str = "\
Examples:
  sumrate serve --listen 0.0.0.0:7443            on a host that has a public address
  sumrate up 'sumrate://...'                     on your machine; then use socks5h://127.0.0.1:1080
  curl -x socks5h://127.0.0.1:1080 -O https://example.org/file

Exit codes: 0 done, 1 the operation failed, 2 wrong usage or configuration,
3 a privilege is missing, 130 stopped by Ctrl-C.";

/// The whole command line.
#[derive(Debug, Parser)]
#[command(
    name = "sumrate",
    version,
    about = "Every radio you have, added up; while one is blocked, the others carry on",
    after_help = EXAMPLE,
    max_term_width = 100
)]
pub struct Cli {
    /// Say more on stderr: -v progress, -vv debugging (SUMRATE_LOG sets it finer)
    #[arg(short, long, global = true, action = ArgAction::Count)]
    pub verbose: u8,
    /// How the log is written
    #[arg(long, global = true, value_enum, value_name = "FORMAT", default_value = "auto")]
    pub log_format: LogFormat,
    /// The same as --json after the command
    #[arg(long)]
    pub json: bool,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Be the far end: accept clients and reach the network for them
    Serve(Box<ServeArgs>),
    /// Add up this machine's paths to a server and offer them as a proxy
    Up(Box<UpArgs>),
    /// Run a command with its TCP connections led to a running `sumrate up`
    Run(RunArgs),
    /// Measure goodput, delay and redundancy over the paths to a server
    Bench(BenchArgs),
    /// Copy files and directories to a server or from it
    Cp(CpArgs),
    /// Show what a running `sumrate up` or `sumrate serve` is doing
    Status(StatusArgs),
    /// Watch the paths of a running process: rates, RTT, windows
    Top(TopArgs),
    /// Say in words why each path carries what it carries
    Explain(ExplainArgs),
    /// List the paths, or change how they are used
    Path(PathCommandArgs),
    /// Have a running `sumrate up` or `sumrate serve` read its configuration again
    Reload(ReloadArgs),
    /// List, add or revoke the credentials that a server accepts
    Credential(CredentialArgs),
    /// Say what of this machine keeps paths from adding up, and the command that mends it
    Doctor(DoctorArgs),
    /// Check the configuration file, or print an example of one
    Config(ConfigArgs),
    /// Load, unload or list coupled congestion control
    Cc(CcArgs),
    /// Print the manual page, or write all of them
    Man(ManArgs),
    /// Print completions for a shell
    Completions(CompletionsArgs),
    /// Emulate links: rate, delay, loss, blackouts
    #[command(
        subcommand,
        after_help = "Example:\n  sumrate link set --control /tmp/link.sock wifi both rate_mbps=300 loss=0.05"
    )]
    Link(sumrate_link::LinkCommand),
}
