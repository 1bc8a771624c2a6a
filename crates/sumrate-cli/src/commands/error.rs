//! How a command fails, and with which exit code.

use std::io;

use fbdt::{AcceptError, BindError, ConnectError, SocketError as TransportSocketError, StateError};
use serde::{Deserialize, Serialize};

use sumrate_capture::guardian::CaptureError;
use sumrate_capture::program::ProgramError;
use sumrate_cc::CouplingError;

use super::{CpError, OperandError, ReloadError, RunError, SetupError};
use crate::bench::BenchError;
use crate::config::ConfigError;
use crate::control::ControlError;
use crate::files::RootError;
use crate::interrupt::Interrupt;
use crate::output;
use crate::policy::PolicyError;
use crate::privileges::PrivilegeError;
use crate::status::SocketError;

/// Name and version of the JSON form of an error.
pub const ERROR_SCHEMA: &str = "sumrate.error.v1";

/// Exit code: the operation failed.
const EXIT_FAILED: u8 = 1;
/// Exit code: wrong usage or configuration.
const EXIT_USAGE: u8 = 2;
/// Exit code: a privilege is missing.
const EXIT_PRIVILEGE: u8 = 3;
/// Exit code of `run`: the command cannot be started.
const EXIT_UNUSABLE_PROGRAM: u8 = 126;
/// Exit code of `run`: there is no such command.
const EXIT_NO_PROGRAM: u8 = 127;
/// Exit code: stopped by Ctrl-C.
const EXIT_INTERRUPTED: u8 = 130;
/// Exit code: stopped by SIGTERM before the result was there.
const EXIT_TERMINATED: u8 = 143;

/// Why a command ended without success.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    /// The configuration cannot work.
    #[error(transparent)]
    Setup(#[from] SetupError),
    /// The configuration file is wrong.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// No command is called so that reads the configuration.
    #[error("the configuration has no table {name}; there are: {known}")]
    UnknownTable {
        /// The name.
        name: String,
        /// Those that exist.
        known: String,
    },
    /// Privileges cannot be given up.
    #[error(transparent)]
    Privilege(#[from] PrivilegeError),
    /// Coupled congestion control cannot be had.
    #[error(transparent)]
    Coupling(#[from] CouplingError),
    /// Connections cannot be taken.
    #[error(transparent)]
    Capture(#[from] CaptureError),
    /// A command was not started.
    #[error(transparent)]
    Run(#[from] RunError),
    /// The server cannot listen.
    #[error("{source}{advice}", source = .0, advice = bind_advice(.0))]
    Bind(#[from] BindError),
    /// The server's state cannot be used.
    #[error(transparent)]
    State(#[from] StateError),
    /// No session.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// The server takes no more sessions.
    #[error(transparent)]
    Accept(#[from] AcceptError),
    /// The measurement failed.
    #[error(transparent)]
    Bench(#[from] BenchError),
    /// The status could not be had.
    #[error(transparent)]
    Status(#[from] SocketError),
    /// A path's policy cannot be had.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// A change was not made.
    #[error(transparent)]
    Control(#[from] ControlError),
    /// No path of this name.
    #[error("there is no path {name}; the paths are: {known}")]
    UnknownPath {
        /// The name.
        name: String,
        /// Those that exist.
        known: String,
    },
    /// What to copy makes no sense.
    #[error(transparent)]
    Operand(#[from] OperandError),
    /// A copy failed.
    #[error(transparent)]
    Cp(#[from] CpError),
    /// A directory cannot be offered.
    #[error("--files {0}")]
    Files(#[from] RootError),
    /// The doctor found problems.
    #[error("{0} of the checks found something that does not work")]
    Unwell(usize),
    /// A process did not reload.
    #[error(transparent)]
    Reload(#[from] ReloadError),
    /// Several processes could be meant.
    #[error("{} processes could be meant; choose one:\n  {}", .0.len(), .0.join("\n  "))]
    Ambiguous(Vec<String>),
    /// Output or the system failed.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// A signal.
    #[error("stopped by {}", match .0 { Interrupt::Interrupted => "Ctrl-C", Interrupt::Terminated => "SIGTERM" })]
    Interrupted(Interrupt),
}

fn bind_advice(error: &BindError) -> &'static str {
    match bind_kind(error) {
        Some(io::ErrorKind::AddrInUse) => {
            ". Another process has the port (`ss -ltnp` shows which): stop it or choose another"
        }
        Some(io::ErrorKind::AddrNotAvailable) => {
            ". Choose an address of this machine (`ip address`), 0.0.0.0 or [::]"
        }
        Some(io::ErrorKind::PermissionDenied) => {
            ". Ports below 1024 need CAP_NET_BIND_SERVICE: choose a higher one or `setcap`"
        }
        _ => "",
    }
}

fn bind_kind(error: &BindError) -> Option<io::ErrorKind> {
    match error {
        BindError::Listen { source: TransportSocketError::Address { source, .. }, .. } => {
            Some(source.kind())
        }
        _ => None,
    }
}

impl CommandError {
    /// The process's exit code.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Setup(error) if error.is_privilege() => EXIT_PRIVILEGE,
            Self::Privilege(error) if error.is_privilege() => EXIT_PRIVILEGE,
            Self::Privilege(_) => EXIT_USAGE,
            Self::Capture(error) if error.is_privilege() => EXIT_PRIVILEGE,
            Self::Reload(ReloadError::Signal { .. }) => EXIT_PRIVILEGE,
            Self::Reload(ReloadError::WrongConfiguration(_)) => EXIT_USAGE,
            Self::Coupling(error) if error.is_privilege() => EXIT_PRIVILEGE,
            Self::Status(SocketError::Denied(_)) => EXIT_PRIVILEGE,
            Self::Bind(error) if bind_kind(error) == Some(io::ErrorKind::PermissionDenied) => {
                EXIT_PRIVILEGE
            }
            Self::Operand(_) | Self::Files(_) => EXIT_USAGE,
            Self::Control(ControlError::Refused(_)) => EXIT_USAGE,
            Self::Cp(CpError::Local { .. } | CpError::Root(_) | CpError::Asked(_)) => EXIT_USAGE,
            Self::Config(_) | Self::UnknownTable { .. } => EXIT_USAGE,
            Self::Setup(_)
            | Self::Bind(_)
            | Self::State(_)
            | Self::Policy(_)
            | Self::UnknownPath { .. }
            | Self::Ambiguous(_) => EXIT_USAGE,
            Self::Connect(
                ConnectError::Insecure { .. }
                | ConnectError::Config(_)
                | ConnectError::TooManyPaths(_),
            ) => EXIT_USAGE,
            Self::Status(
                SocketError::InUse(_) | SocketError::NotASocket(_) | SocketError::Directory(_),
            ) => EXIT_USAGE,
            Self::Bench(BenchError::Plan(_)) => EXIT_USAGE,
            Self::Capture(CaptureError::Missing { .. }) => EXIT_USAGE,
            // As shells have it.
            Self::Run(RunError::Program(ProgramError::NotFound(_))) => EXIT_NO_PROGRAM,
            Self::Run(RunError::Program(ProgramError::Unusable { .. }) | RunError::Exec { .. }) => {
                EXIT_UNUSABLE_PROGRAM
            }
            Self::Run(
                RunError::Program(ProgramError::OutOfReach { .. })
                | RunError::Proxy(_)
                | RunError::Elsewhere(_)
                | RunError::Password(..),
            ) => EXIT_USAGE,
            Self::Connect(_)
            | Self::Accept(_)
            | Self::Bench(_)
            | Self::Status(_)
            | Self::Control(_)
            | Self::Reload(_)
            | Self::Unwell(_)
            | Self::Cp(_)
            | Self::Coupling(_)
            | Self::Capture(_)
            | Self::Run(_)
            | Self::Io(_) => EXIT_FAILED,
            Self::Interrupted(Interrupt::Interrupted) => EXIT_INTERRUPTED,
            Self::Interrupted(Interrupt::Terminated) => EXIT_TERMINATED,
        }
    }

    /// The error as values.
    pub fn report(&self) -> ErrorReport {
        ErrorReport {
            schema: ERROR_SCHEMA.to_owned(),
            exit_code: self.exit_code(),
            message: output::without_codes(&output::without_secrets(&self.to_string())),
        }
    }
}

/// The JSON form of an error, printed with `--json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorReport {
    /// [`ERROR_SCHEMA`].
    pub schema: String,
    /// The process's exit code.
    pub exit_code: u8,
    /// What failed and what to do.
    pub message: String,
}
