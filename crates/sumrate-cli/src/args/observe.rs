//! Flags of the daemons for those who watch them.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::RESEARCH;
use super::listen::impossible_port;

/// Where a daemon can be watched.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Watching")]
pub struct ObserveArgs {
    /// Prometheus metrics on http://ADDR:PORT/metrics; PORT alone means 127.0.0.1
    #[arg(long, value_name = "[ADDR:]PORT", value_parser = listen_address)]
    pub metrics: Option<SocketAddr>,
    /// Let other machines read the metrics
    #[arg(long, requires = "metrics")]
    pub metrics_open: bool,
    /// Status page with live charts on http://ADDR:PORT; PORT alone means 127.0.0.1, 0 a free port; the
    /// printed URL is a password
    #[arg(long, value_name = "[ADDR:]PORT", value_parser = listen_address)]
    pub web: Option<SocketAddr>,
    /// Let other machines open the page; it is not encrypted
    #[arg(long, requires = "web")]
    pub web_open: bool,
    /// Show only: the page changes no path. With --web-open it never does
    #[arg(long, requires = "web")]
    pub web_read_only: bool,
    /// Write events to this file, one a line; `sumrate-lab events` draws it. FILE and the older FILE.1
    /// have at most 64 MiB each
    #[arg(long, help_heading = RESEARCH, value_name = "FILE")]
    pub event_log: Option<PathBuf>,
    /// Sampling interval of --event-log, in seconds, at least 0.01 [default: 0.1]
    #[arg(long, help_heading = RESEARCH, value_name = "SECONDS", value_parser = super::seconds, requires = "event_log")]
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
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let port = if is_number { Some(text) } else { impossible_port(text) };
    text.parse().map_err(|_| match port {
        Some(port) => format!("{port} is not a port (1 to 65535)"),
        None => "write PORT, ADDR:PORT or [IPV6]:PORT, for example 9464".to_owned(),
    })
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
