//! The `ip` command of iproute2.

use std::io;
use std::process::{Command, Stdio};

/// Why an `ip` command failed.
#[derive(Debug, thiserror::Error)]
pub enum IpError {
    /// There is no such command.
    #[error("cannot run `ip`: {source}; install iproute2")]
    Start {
        /// Why.
        source: io::Error,
    },
    /// The caller may not.
    #[error("`{command}` was refused: {message}; run inside `unshare -Urnm`, or as root")]
    Privilege {
        /// The command.
        command: String,
        /// What it said.
        message: String,
    },
    /// Anything else.
    #[error("`{command}` failed: {message}")]
    Failed {
        /// The command.
        command: String,
        /// What it said.
        message: String,
    },
}

/// Runs `ip ARGUMENTS`, in namespace `netns` if given.
pub(super) fn run(netns: Option<&str>, arguments: &[&str]) -> Result<(), IpError> {
    let mut all = Vec::new();
    if let Some(netns) = netns {
        all.extend(["-n", netns]);
    }
    all.extend(arguments);
    let output = Command::new("ip")
        .args(&all)
        .stdin(Stdio::null())
        .output()
        .map_err(|source| IpError::Start { source })?;
    if output.status.success() {
        return Ok(());
    }
    let command = format!("ip {}", all.join(" "));
    let message = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    if message.contains("not permitted") || message.contains("Permission denied") {
        Err(IpError::Privilege { command, message })
    } else {
        Err(IpError::Failed { command, message })
    }
}

/// The alias of an interface (empty if it has none); `None`: there is no such interface.
pub(super) fn alias(interface: &str) -> Option<String> {
    let output = Command::new("ip")
        .args(["-j", "link", "show", "dev", interface])
        .stdin(Stdio::null())
        .output()
        .ok()?;
    let found: serde_json::Value = serde_json::from_slice(&output.stdout).ok()?;
    let entry = found.get(0)?.as_object().filter(|entry| !entry.is_empty())?;
    Some(entry.get("ifalias").and_then(|alias| alias.as_str()).unwrap_or_default().to_owned())
}
