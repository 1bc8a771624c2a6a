//! Flags of `sumrate serve`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;

use super::listen::{address, address_as_in};
use super::{DaemonArgs, ObserveArgs, ProtocolArgs};
use crate::exit::AllowRule;

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
    /// Address and port to accept clients on
    #[arg(long, value_name = "ADDR:PORT", value_parser = listen_address, required = true)]
    pub listen: Vec<SocketAddr>,
    /// Address that clients are told to use, where it differs from --listen (NAT, several radios)
    #[arg(long, value_name = "ADDR:PORT", value_parser = address)]
    pub advertise: Vec<SocketAddr>,
    /// Directory of the server's key and credentials [default: $XDG_STATE_HOME/sumrate]
    #[arg(long, value_name = "DIR")]
    pub state: Option<PathBuf>,
    /// Write the join link to this file once clients are accepted
    #[arg(long, value_name = "FILE")]
    pub link_file: Option<PathBuf>,
    /// Let clients reach this network, address or address and port though it is private or local
    #[arg(long, value_name = "NET")]
    pub allow: Vec<AllowRule>,
    /// Let clients copy files from and to this directory, if their credential allows it (`credential
    /// add --files`)
    #[arg(long, value_name = "DIR")]
    pub files: Option<PathBuf>,
    /// Answer `sumrate status` on this socket [default: one in $XDG_RUNTIME_DIR/sumrate]
    #[arg(long, value_name = "PATH")]
    pub status_socket: Option<PathBuf>,
    /// Where flags come from, and how it stops.
    #[command(flatten)]
    pub daemon: DaemonArgs,
    /// Run as this user, without root's rights; root only. The files that other flags name must be
    /// that user's, and --state must be given
    #[arg(long, value_name = "NAME", requires = "state")]
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

/// Where a server listens; most mean every address of the machine.
fn listen_address(text: &str) -> Result<SocketAddr, String> {
    address_as_in(text, "0.0.0.0:7443, for every address")
}
