//! System programs that make, list and remove rules and routes.

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::rules::{Listed, Step};

/// Where system programs are, whatever PATH says: this runs as root.
const FOLDERS: [&str; 6] =
    ["/usr/local/sbin", "/usr/sbin", "/sbin", "/usr/local/bin", "/usr/bin", "/bin"];

/// The file of a system program.
pub(crate) fn find(program: &str) -> Option<PathBuf> {
    FOLDERS.iter().map(|folder| PathBuf::from(folder).join(program)).find(|file| file.is_file())
}

/// Runs a command; what it said.
pub(crate) fn run(step: &Step) -> Result<String, String> {
    let words = step.words.join(" ");
    let (name, arguments) = step.words.split_first().ok_or("no command")?;
    let program = find(name).ok_or_else(|| format!("{name} is not installed"))?;
    let mut child = Command::new(program)
        .args(arguments)
        .env_clear()
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| format!("`{words}`: {error}"))?;
    if let Some(mut input) = child.stdin.take() {
        let _ = input.write_all(step.input.as_bytes());
    }
    let done = child.wait_with_output().map_err(|error| format!("`{words}`: {error}"))?;
    if done.status.success() {
        return Ok(String::from_utf8_lossy(&done.stdout).into_owned());
    }
    Err(format!("`{words}` failed: {}", String::from_utf8_lossy(&done.stderr).trim()))
}

/// A command of plain words.
pub(crate) fn command(words: &str) -> Step {
    Step { words: words.split(' ').map(str::to_owned).collect(), input: String::new() }
}

/// What a command says; nothing if it fails.
pub(crate) fn ask(words: &str) -> String {
    run(&command(words)).unwrap_or_default()
}

/// The routing rules of both families.
pub(crate) fn listed_rules() -> Listed {
    ["ip -4 rule", "ip -6 rule"].map(ask)
}
