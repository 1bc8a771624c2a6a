//! Measures every link in both directions against what was set, before a run relies on it.
//!
//! Sockets are made inside the end points' namespaces; schedules, blackouts, holds and bursts are left out.

mod endpoint;
mod loss;
mod rate;
mod round_trip;
pub mod verdict;

use std::io;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use serde::Serialize;

use crate::config::{Config, Direction, LinkConfig, Schedule, Side};
use crate::emulator::report::Report;
use crate::emulator::{Emulator, RunError};
use crate::interfaces::SetupError;
use crate::netns::NetnsError;
use endpoint::Endpoints;
use verdict::Measurement;

/// Why a calibration could not be made. A link that is off is not an error but a verdict.
#[derive(Debug, thiserror::Error)]
pub enum CalibrateError {
    /// The links could not be brought up.
    #[error(transparent)]
    Setup(#[from] SetupError),
    /// The emulator broke off.
    #[error(transparent)]
    Run(#[from] RunError),
    /// A namespace cannot be entered.
    #[error(transparent)]
    Netns(#[from] NetnsError),
    /// The ends have no addresses of the same family.
    #[error(
        "link {link:?}: calibration needs an IPv4 or IPv6 address at both ends; add `address` to [link.a] and [link.b]"
    )]
    NoAddress {
        /// The link.
        link: String,
    },
    /// A socket failed.
    #[error("link {link:?}: {operation} failed: {source}")]
    Socket {
        /// The link.
        link: String,
        /// What was tried.
        operation: &'static str,
        /// The kernel's answer.
        source: io::Error,
    },
    /// Nothing came through.
    #[error(
        "link {link:?}: no packet came from one end to the other within {seconds} s; is a firewall in the namespaces?"
    )]
    Silent {
        /// The link.
        link: String,
        /// How long was waited.
        seconds: u64,
    },
    /// The emulator's thread is gone.
    #[error("the emulator's thread ended early")]
    Gone,
}

/// What a calibration found.
#[derive(Clone, Debug, Serialize)]
pub struct Calibration {
    /// 1.
    pub version: u32,
    /// Whether all measurements are within their tolerances.
    pub passed: bool,
    /// Each link, in the order of the configuration.
    pub links: Vec<LinkCalibration>,
    /// What the emulator counted meanwhile, its lateness among it.
    pub emulator: Report,
}

/// What was found about one link.
#[derive(Clone, Debug, Serialize)]
pub struct LinkCalibration {
    /// Its name.
    pub name: String,
    /// Round trip, loss and rate, each in both directions.
    pub measurements: Vec<Measurement>,
}

/// Brings the links up and measures them; each rate for `duration`.
pub fn calibrate(config: &Config, duration: Duration) -> Result<Calibration, CalibrateError> {
    let mut plain = config.clone();
    for link in &mut plain.links {
        link.schedule = Schedule::default();
        for parameters in &mut link.parameters {
            parameters.blackout = false;
            parameters.hold = false;
            parameters.burst = 0;
        }
    }
    let (stop, stopped) = UnixStream::pair().map_err(|source| CalibrateError::Socket {
        link: String::new(),
        operation: "making a socket pair",
        source,
    })?;
    let (ready, is_ready) = mpsc::channel();
    thread::scope(|scope| {
        let emulator = {
            let config = plain.clone();
            scope.spawn(move || run_emulator(config, &stopped, &ready))
        };
        let measured = match is_ready.recv() {
            Ok(()) => plain.links.iter().map(|link| calibrate_link(link, duration)).collect(),
            Err(_) => Ok(Vec::new()),
        };
        drop(stop);
        let report = emulator.join().map_err(|_| CalibrateError::Gone)??;
        let links: Vec<LinkCalibration> = measured?;
        Ok(Calibration {
            version: 1,
            passed: links
                .iter()
                .flat_map(|link| &link.measurements)
                .all(|measurement| measurement.ok),
            links,
            emulator: report,
        })
    })
}

fn run_emulator(
    config: Config,
    stopped: &UnixStream,
    ready: &mpsc::Sender<()>,
) -> Result<Report, CalibrateError> {
    let mut emulator = Emulator::start(config)?;
    ready.send(()).map_err(|_| CalibrateError::Gone)?;
    emulator.run(stopped.as_fd(), None)?;
    Ok(emulator.report())
}

fn calibrate_link(
    link: &LinkConfig,
    duration: Duration,
) -> Result<LinkCalibration, CalibrateError> {
    let ends = Endpoints::new(link)?;
    let mut measurements = Vec::new();
    for side in Side::ALL {
        measurements.push(round_trip::measure(link, &ends, side)?);
    }
    for direction in Direction::ALL {
        measurements.push(loss::measure(link, &ends, direction, duration)?);
    }
    for direction in Direction::ALL {
        measurements.push(rate::measure(link, &ends, direction, duration)?);
    }
    Ok(LinkCalibration { name: link.name.clone(), measurements })
}
