//! Flags of `sumrate run`.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;
use ipnet::IpNet;

use super::{ProxyAuth, capture::net};

const EXAMPLE: &str = "\
Examples:
  sumrate up @link.txt                  in another terminal, or as a service
  sumrate run -- git clone https://example.org/project.git
  sumrate run --direct 10.0.0.0/8 -- ssh me@host.example.org

Works for programs that use this machine's C library (glibc). Others (statically linked, Go,
setuid) are refused, or reported on stderr if the command starts them. UDP goes out directly.
The exit code is the command's own, 127 if it does not exist, 126 if it cannot start.";

/// Arguments of `sumrate run`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLE)]
pub struct RunArgs {
    /// SOCKS5 proxy of the `sumrate up` to use [default: of the only running one]
    #[arg(long, value_name = "ADDR:PORT", value_parser = proxy_address)]
    pub socks: Option<SocketAddr>,
    /// Password of the proxy: USER:PASSWORD, or @FILE with it
    #[arg(long, value_name = "USER:PASSWORD|@FILE")]
    pub socks_auth: Option<ProxyAuth>,
    /// Status socket of the `sumrate up` to use, where several run
    #[arg(long, value_name = "PATH", conflicts_with = "socks")]
    pub socket: Option<PathBuf>,
    /// Connect directly to this network or address, as to this machine and its links
    #[arg(long, value_name = "NET", value_parser = net)]
    pub direct: Vec<IpNet>,
    /// Resolve names on this machine, not at the server
    #[arg(long)]
    pub local_names: bool,
    /// Refuse to start programs that cannot be captured
    #[arg(long)]
    pub strict: bool,
    /// Print an error as JSON, too
    #[arg(long)]
    pub json: bool,
    /// The command and its arguments
    #[arg(
        value_name = "COMMAND",
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true
    )]
    pub command: Vec<OsString>,
}

/// Where the proxy of a `sumrate up` listens.
fn proxy_address(text: &str) -> Result<SocketAddr, String> {
    super::listen::address_as_in(text, "127.0.0.1:1080")
}
