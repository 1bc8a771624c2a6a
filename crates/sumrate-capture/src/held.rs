//! A second copy of the nftables table, which the kernel keeps others from changing: it belongs to the
//! program that made it, and goes with it. It takes connections while the first copy is missing, and the
//! first one remains when the guardian is killed.

use std::io::Write;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::commands::{ask, find};

const TABLE_PREFIX: &str = "sumrateheld_";
/// How long the program may take to make the table.
const PATIENCE: Duration = Duration::from_millis(1500);
/// How often it is looked for meanwhile.
const LOOK: Duration = Duration::from_millis(20);

/// The copy, and the program that holds it.
#[derive(Debug)]
pub(crate) struct Held {
    name: String,
    chains: String,
    program: Option<Child>,
}

impl Held {
    /// None yet; it will be named after the guardian.
    pub(crate) fn new(pid: u32) -> Self {
        Self { name: format!("{TABLE_PREFIX}{pid}"), chains: String::new(), program: None }
    }

    /// Puts chains and sets in the place of those that it has.
    ///
    /// # Errors
    /// The kernel or nft does not know such tables, or refused it.
    pub(crate) fn hold(&mut self, chains: &str) -> Result<(), String> {
        self.release();
        let program = find("nft").ok_or("nft is not installed")?;
        let mut child = Command::new(program)
            .arg("--interactive")
            .env_clear()
            // It would write its history there.
            .env("HOME", "/dev/null")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| format!("`nft --interactive`: {error}"))?;
        let text = format!("table inet {} {{\nflags owner\n{chains}}}", self.name);
        // It reads a command from each line.
        chains.clone_into(&mut self.chains);
        let line = text.replace('\n', ";") + "\n";
        let sent = child.stdin.as_mut().map(|input| input.write_all(line.as_bytes()));
        self.program = Some(child);
        let until = Instant::now() + PATIENCE;
        while matches!(sent, Some(Ok(()))) && Instant::now() < until {
            if self.is_there() {
                return Ok(());
            }
            std::thread::sleep(LOOK);
        }
        self.release();
        Err("the kernel or nft does not know tables with an owner (Linux 5.12)".to_owned())
    }

    /// Makes it again as it was.
    ///
    /// # Errors
    /// As [`Held::hold`].
    pub(crate) fn again(&mut self) -> Result<(), String> {
        let chains = std::mem::take(&mut self.chains);
        self.hold(&chains)
    }

    /// Whether it is there.
    pub(crate) fn is_there(&self) -> bool {
        let wanted = format!("table inet {}", self.name);
        self.program.is_some() && ask("nft list tables").lines().any(|line| line.trim() == wanted)
    }

    /// Whether it was there and is to be.
    pub(crate) fn is_wanted(&self) -> bool {
        self.program.is_some()
    }

    /// Removes it.
    pub(crate) fn release(&mut self) {
        if let Some(mut program) = self.program.take() {
            let _ = program.kill();
            let _ = program.wait();
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.release();
    }
}
