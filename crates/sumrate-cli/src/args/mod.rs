//! Command line: every command and flag is defined here once; help, errors and defaults come from it.

mod bench;
mod capture;
mod cc;
mod config;
mod cp;
mod credential;
mod daemon;
mod doctor;
mod help;
mod listen;
mod log;
mod manual;
mod observe;
mod path;
mod policy;
mod protocol;
mod reach;
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
pub(crate) use help::{HelpWords, declaration, help_words};
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
pub use reach::ReachArgs;
pub use reload::ReloadArgs;
pub use run::RunArgs;
pub(crate) use serve::LEAST_MEMORY;
pub use serve::ServeArgs;
pub use status::StatusArgs;
pub use top::TopArgs;
pub use up::UpArgs;
pub(crate) use usage_error::{advice, without_passwords};

use clap::{ArgAction, Parser, Subcommand};

/// Heading of flags that `--help` leaves out and `--help-all` shows.
pub const RESEARCH: &str = "Research and tuning";
/// Heading of flags for services.
const SERVICE: &str = "Service";

const EXAMPLE: &str = "\
Examples:
  sumrate serve --listen 0.0.0.0:7443            on a server with a public address
  sumrate up 'sumrate://...'                     on your machine; then use socks5h://127.0.0.1:1080
  curl -x socks5h://127.0.0.1:1080 -O https://example.org/file

`sumrate COMMAND --help` explains a command; `--help-all` also shows flags for research and tuning.

Exit codes: 0 done, 1 the operation failed, 2 wrong usage or configuration,
3 a privilege is missing, 130 stopped by Ctrl-C.";

/// The whole command line.
#[derive(Debug, Parser)]
#[command(
    name = "sumrate",
    version,
    about = "Use several internet links at the same time; when one drops, the others carry on",
    after_help = EXAMPLE,
    max_term_width = 100
)]
pub struct Cli {
    /// More log lines on stderr: -v progress, -vv debugging (or SUMRATE_LOG=debug)
    #[arg(short, long, global = true, action = ArgAction::Count)]
    pub verbose: u8,
    /// Format of the log
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
    /// Run the server
    Serve(Box<ServeArgs>),
    /// Connect all links to a server; opens a SOCKS5 proxy
    Up(Box<UpArgs>),
    /// Run a command through Sumrate
    Run(RunArgs),
    /// Measure speed and delay to a server
    Bench(BenchArgs),
    /// Copy files to or from a server
    Cp(CpArgs),
    /// Show speed and health of the running processes
    Status(StatusArgs),
    /// Watch speed and health live
    Top(TopArgs),
    /// Explain why each path is as fast as it is
    Explain(ExplainArgs),
    /// List the paths, or set backup, limits and quotas
    Path(PathCommandArgs),
    /// Reload the configuration of a running process
    Reload(ReloadArgs),
    /// Manage the credentials of a server: list, add, revoke
    Credential(CredentialArgs),
    /// Check this machine for problems and show fixes
    Doctor(DoctorArgs),
    /// Check the configuration file, or print an example
    Config(ConfigArgs),
    /// Load, unload or list coupled congestion control (research)
    Cc(CcArgs),
    /// Print the manual page, or write all of them
    Man(ManArgs),
    /// Print shell completions
    Completions(CompletionsArgs),
    /// Emulate links: rate, delay, loss, blackouts (research)
    #[command(
        subcommand,
        after_help = "Example:\n  sumrate link set --control /tmp/link.sock wifi both rate_mbps=300 loss=0.05"
    )]
    Link(sumrate_link::LinkCommand),
}
