//! Measures every link in both directions against what was set, before a run relies on it.
//!
//! Sockets are made inside the end points' namespaces; schedules, blackouts, holds, bursts, policers
//! and gathering are left out.

mod delay;
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

use crate::config::{Config, Direction, Jitter, LinkConfig, Schedule, Side};
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
    /// Round trip, loss and rate, each in both directions; of directions with jitter, the delay and its deviation.
    pub measurements: Vec<Measurement>,
}

/// Brings the links up and measures them; each rate for `duration`. Links with jitter are measured without it, and
/// then their delays with it.
pub fn calibrate(config: &Config, duration: Duration) -> Result<Calibration, CalibrateError> {
    let (links, mut report) = measure(plain(config, false), |link| calibrate_link(link, duration))?;
    let mut links: Vec<LinkCalibration> = config
        .links
        .iter()
        .zip(links)
        .map(|(link, measurements)| LinkCalibration { name: link.name.clone(), measurements })
        .collect();
    if config.links.iter().any(|link| varying(link).next().is_some()) {
        let (delays, second) =
            measure(plain(config, true), |link| calibrate_delays(link, duration))?;
        for (link, measurements) in links.iter_mut().zip(delays) {
            link.measurements.extend(measurements);
        }
        if second.lateness.worst_ms > report.lateness.worst_ms {
            report = second;
        }
    }
    let passed = links.iter().flat_map(|link| &link.measurements).all(|measurement| measurement.ok);
    Ok(Calibration { version: 1, passed, links, emulator: report })
}

/// The links without what makes their packets differ; with `jitter`, packets may overtake each other, so that each one
/// shows its own delay.
fn plain(config: &Config, jitter: bool) -> Config {
    let mut plain = config.clone();
    for link in &mut plain.links {
        link.schedule = Schedule::default();
        if jitter {
            link.sleep = None;
        }
        for parameters in &mut link.parameters {
            parameters.blackout = false;
            parameters.hold = false;
            parameters.burst = 0;
            parameters.policer = false;
            parameters.gather = 0;
            parameters.reorder = jitter;
            if !jitter {
                parameters.jitter = Jitter::NONE;
            }
        }
    }
    plain
}

/// Runs the links and measures each one; also returns what the emulator counted.
fn measure(
    config: Config,
    link: impl Fn(&LinkConfig) -> Result<Vec<Measurement>, CalibrateError>,
) -> Result<(Vec<Vec<Measurement>>, Report), CalibrateError> {
    let (stop, stopped) = UnixStream::pair().map_err(|source| CalibrateError::Socket {
        link: String::new(),
        operation: "making a socket pair",
        source,
    })?;
    let (ready, is_ready) = mpsc::channel();
    let links = config.links.clone();
    thread::scope(|scope| {
        let emulator = scope.spawn(move || run_emulator(config, &stopped, &ready));
        let measured = match is_ready.recv() {
            Ok(()) => links.iter().map(link).collect(),
            Err(_) => Ok(Vec::new()),
        };
        drop(stop);
        let report = emulator.join().map_err(|_| CalibrateError::Gone)??;
        Ok((measured?, report))
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
) -> Result<Vec<Measurement>, CalibrateError> {
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
    Ok(measurements)
}

fn calibrate_delays(
    link: &LinkConfig,
    duration: Duration,
) -> Result<Vec<Measurement>, CalibrateError> {
    let mut measurements = Vec::new();
    for direction in varying(link) {
        measurements.extend(delay::measure(link, &Endpoints::new(link)?, direction, duration)?);
    }
    Ok(measurements)
}

/// Directions with jitter in which packets arrive at all.
fn varying(link: &LinkConfig) -> impl Iterator<Item = Direction> + '_ {
    Direction::ALL.into_iter().filter(|direction| {
        let parameters = &link.parameters[direction.index()];
        !parameters.jitter.is_none() && parameters.loss < 1.0
    })
}
