//! `run`.

use std::fs::File;
use std::io::Write;
use std::os::fd::AsFd;
use std::path::Path;
use std::process::ExitCode;

use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};

use super::{Failure, RunArgs, print};
use crate::config::Config;
use crate::control::server::Server;
use crate::emulator::Emulator;

pub(super) fn run(arguments: &RunArgs) -> Result<ExitCode, Failure> {
    let mut config = Config::load(&arguments.config).map_err(Failure::usage)?;
    if let Some(seed) = arguments.seed {
        config.seed = seed;
    }
    let signals = block_signals().map_err(|error| Failure::new(1, error))?;
    let mut control = match &arguments.control {
        Some(path) => Some(Server::bind(path).map_err(Failure::usage)?),
        None => None,
    };
    let mut emulator = Emulator::start(config)?;
    if let Some(file) = &arguments.ready {
        write_file(file, "ready\n")?;
    }
    if !arguments.json {
        print("ready");
    }
    let result = emulator.run(signals.as_fd(), control.as_mut());
    let report =
        serde_json::to_string_pretty(&emulator.report()).map_err(|error| Failure::new(1, error))?;
    drop(emulator);
    if let Some(file) = &arguments.ready {
        // It says that the links are up, and they no longer are.
        let _ = std::fs::remove_file(file);
    }
    if let Some(file) = &arguments.stats {
        write_file(file, &report)?;
    }
    if arguments.json {
        print(&report);
    }
    result.map_err(|error| Failure::new(1, error))?;
    Ok(ExitCode::SUCCESS)
}

/// SIGINT and SIGTERM as a descriptor.
fn block_signals() -> nix::Result<SignalFd> {
    let mut set = SigSet::empty();
    set.add(Signal::SIGINT);
    set.add(Signal::SIGTERM);
    set.thread_block()?;
    SignalFd::with_flags(&set, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)
}

/// Writes a file that is complete as soon as it is there.
fn write_file(path: &Path, text: &str) -> Result<(), Failure> {
    let fail = |error| Failure::usage(format!("cannot write {}: {error}", path.display()));
    let mut partial = path.as_os_str().to_owned();
    // What others put there is neither followed nor used.
    partial.push(format!(".{}.partial", std::process::id()));
    let created = File::options().write(true).create_new(true).open(&partial);
    created.and_then(|mut file| file.write_all(text.as_bytes())).map_err(fail)?;
    std::fs::rename(&partial, path).map_err(fail)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_follows_no_planted_link() {
        let directory = tempfile::tempdir().unwrap();
        let place = |name: &str| directory.path().join(name);
        let (file, victim) = (place("stats.json"), place("victim"));
        std::fs::write(&victim, "untouched").unwrap();
        for name in ["stats.json.partial", "stats.json"] {
            std::os::unix::fs::symlink(&victim, place(name)).unwrap();
        }
        assert!(write_file(&file, "{}").is_ok());
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "{}");
        let own = place(&format!("stats.json.{}.partial", std::process::id()));
        std::os::unix::fs::symlink(&victim, own).unwrap();
        assert!(write_file(&file, "again").is_err());
        assert_eq!(std::fs::read_to_string(&victim).unwrap(), "untouched");
    }
}
