//! Flags of the daemons for those who watch them.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

/// Where a daemon can be watched.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Watching")]
pub struct ObserveArgs {
    /// Serve metrics for Prometheus on http://ADDR:PORT/metrics; PORT alone is on 127.0.0.1
    #[arg(long, value_name = "[ADDR:]PORT", value_parser = listen_address)]
    pub metrics: Option<SocketAddr>,
    /// Let the metrics be read from beyond this machine
    #[arg(long, requires = "metrics")]
    pub metrics_open: bool,
    /// Serve a page with live charts on http://ADDR:PORT; PORT alone is on 127.0.0.1, 0 takes a free
    /// one. The printed URL is a password
    #[arg(long, value_name = "[ADDR:]PORT", value_parser = listen_address)]
    pub web: Option<SocketAddr>,
    /// Let the page be opened from beyond this machine; it is not encrypted
    #[arg(long, requires = "web")]
    pub web_open: bool,
    /// Write what happens to this file, an event a line; `sumrate-lab events` draws it. It and the
    /// one before, FILE.1, have at most 64 MiB each
    #[arg(long, value_name = "FILE")]
    pub event_log: Option<PathBuf>,
    /// Time between two looks for --event-log, in seconds, at least 0.01 [default: 0.1]
    #[arg(long, value_name = "SECONDS", value_parser = super::seconds, requires = "event_log")]
    pub event_interval: Option<Duration>,
}

impl ObserveArgs {
    /// Ports that are listened on.
    pub fn ports(&self) -> impl Iterator<Item = u16> {
        self.metrics.iter().chain(&self.web).map(SocketAddr::port)
    }
}

/// `ADDR:PORT`, or `PORT` of the loopback address.
fn listen_address(text: &str) -> Result<SocketAddr, String> {
    if let Ok(port) = text.parse::<u16>() {
        return Ok(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port));
    }
    text.parse().map_err(|_| "write PORT, ADDR:PORT or [IPV6]:PORT, for example 9464".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_alone_is_of_this_machine() {
        assert_eq!(listen_address("9464"), Ok("127.0.0.1:9464".parse().unwrap()));
        assert_eq!(listen_address("[::1]:0"), Ok("[::1]:0".parse().unwrap()));
        for bad in ["", "host:1", "70000", "127.0.0.1"] {
            assert!(listen_address(bad).is_err(), "{bad}");
        }
    }
}
