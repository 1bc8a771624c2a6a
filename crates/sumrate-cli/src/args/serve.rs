//! Flags of `sumrate serve`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;
use fbdt::ServerAddress;
use ipnet::IpNet;

use super::capture::net;
use super::listen::{address_as_in, server_address};
use super::reach::protocol;
use super::{DaemonArgs, ObserveArgs, ProtocolArgs, SERVICE};
use crate::exit::AllowRule;
use crate::units::bytes;

/// Least memory for clients, in bytes.
pub(crate) const LEAST_MEMORY: u64 = 16 << 20;

const EXAMPLE: &str = "\
Examples:
  sumrate serve --listen 0.0.0.0:7443
  sumrate serve --listen 0.0.0.0:7443 --listen '[::]:7443' --link-file link.txt
  sumrate serve --listen 10.0.0.1:7443 --allow 192.168.7.0/24 --allow '[fd00::5]:443'

The join link holds a secret: whoever has it can use this server. Revoke it with
`sumrate credential revoke`.";

/// Arguments of `sumrate serve`.
#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLE)]
pub struct ServeArgs {
    /// Address and port to listen on
    #[arg(long, value_name = "ADDR:PORT", value_parser = listen_address, required = true)]
    pub listen: Vec<SocketAddr>,
    /// Address or name in the join link, where it differs from --listen (NAT, several uplinks)
    #[arg(long, value_name = "HOST:PORT", value_parser = server_address)]
    pub advertise: Vec<ServerAddress>,
    /// Proxy in front of this server (HAProxy, nginx, a load balancer), as a network or address: its
    /// connections begin with a header of the PROXY protocol, and limits see the client in it; repeat it
    /// for several
    #[arg(long, value_name = "NET", value_parser = net)]
    pub proxy_protocol: Vec<IpNet>,
    /// Application protocol (ALPN) of clients with the same --alpn, such as h2; repeat it for several
    #[arg(long, value_name = "NAME", value_parser = protocol)]
    pub alpn: Vec<String>,
    /// Directory of the server's key and credentials [default: $XDG_STATE_HOME/sumrate]
    #[arg(long, value_name = "DIR")]
    pub state: Option<PathBuf>,
    /// Write the join link to this file once the server listens
    #[arg(long, value_name = "FILE")]
    pub link_file: Option<PathBuf>,
    /// Allow access to this private network, address or ADDRESS:PORT; repeat it for several
    #[arg(long, value_name = "NET", help_heading = "Destinations")]
    pub allow: Vec<AllowRule>,
    /// Block this TCP and UDP port, as port 25 is, except where --allow names the destination; repeat it
    /// for several
    #[arg(long, help_heading = "Destinations", value_name = "PORT", value_parser = port)]
    pub deny_port: Vec<u16>,
    /// Allow this TCP and UDP port although it is blocked by default (25); repeat it for several
    #[arg(long, help_heading = "Destinations", value_name = "PORT", value_parser = port)]
    pub allow_port: Vec<u16>,
    /// Memory for all clients, as in 512Mi (K, M, G, T mean powers of 1000; Ki, Mi, Gi, Ti of 1024); one
    /// credential gets half of it at most [default: half of the available memory]
    #[arg(long, help_heading = SERVICE, value_name = "BYTES", value_parser = memory_size, allow_hyphen_values = true)]
    pub memory: Option<u64>,
    /// Offer this directory to `sumrate cp`, for credentials made with `credential add --files`
    #[arg(long, value_name = "DIR")]
    pub files: Option<PathBuf>,
    /// Socket for `sumrate status` [default: one in $XDG_RUNTIME_DIR/sumrate]
    #[arg(long, help_heading = "Watching", value_name = "PATH")]
    pub status_socket: Option<PathBuf>,
    /// Where flags come from, and how it stops.
    #[command(flatten)]
    pub daemon: DaemonArgs,
    /// Run as this user instead of root; files of other flags must belong to that user
    #[arg(long, help_heading = SERVICE, value_name = "USER", requires = "state")]
    pub user: Option<String>,
    /// Print events as JSON, one object a line
    #[arg(long)]
    pub json: bool,
    /// Who may watch.
    #[command(flatten)]
    pub observe: ObserveArgs,
    /// How this end sends.
    #[command(flatten)]
    pub protocol: ProtocolArgs,
}

/// A port that a client can ask for.
fn port(text: &str) -> Result<u16, String> {
    match text.parse() {
        Ok(port @ 1..) => Ok(port),
        _ => Err(format!("`{text}` is not a port; write one of 1 to 65535, for example 25")),
    }
}

/// Memory for clients: less than this serves nobody well.
fn memory_size(text: &str) -> Result<u64, String> {
    match bytes(text)? {
        size if size < LEAST_MEMORY => {
            Err(format!("{size} bytes are too few for clients; give 16Mi or more"))
        }
        size => Ok(size),
    }
}

/// Where a server listens; most mean every address of the machine.
fn listen_address(text: &str) -> Result<SocketAddr, String> {
    address_as_in(text, "0.0.0.0:7443, for every address")
}
