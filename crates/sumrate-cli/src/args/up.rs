//! Flags of `sumrate up`.

use std::path::PathBuf;

use clap::Args;

use super::{
    CaptureArgs, DaemonArgs, ObserveArgs, PolicyArg, ProtocolArgs, ProxyAddress, ProxyAuth,
    RESEARCH, ReachArgs, SERVICE,
};
use crate::classes::ClassRule;
use crate::private_text::PrivateText;

const EXAMPLE: &str = "\
Examples:
  sumrate up 'sumrate://203.0.113.9:7443?v=1#k=...&c=...'
  sumrate up @link.txt --path wifi=wlan0 --path lte=wwan0 --http 127.0.0.1:8080
  sumrate up @link.txt --backup wwan0
  sumrate up @near.txt @far.txt
  sumrate up @link.txt --path a=192.168.1.7 --path b=10.0.0.2@203.0.113.10:7443
  sudo sumrate up @link.txt --redirect --only-user me

Then: curl -x socks5h://127.0.0.1:1080 https://example.org/
Other users of this machine can read a link given as an argument; @FILE hides it.";

/// Arguments of `sumrate up`.
#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLE)]
pub struct UpArgs {
    /// The join link that `sumrate serve` prints, in quotes, or @FILE with it (@- is stdin); of several
    /// servers, the next one is used while no path reaches those before it
    #[arg(value_name = "LINK|@FILE", required = true, num_args = 1..)]
    pub link: Vec<PrivateText>,
    /// Which networks are used.
    #[command(flatten)]
    pub reach: ReachArgs,
    /// Per-path settings, as in wwan0=backup,metered,quota=10G or enx*=backup; also weight=3, rate=20M and
    /// never=background+streaming (see `sumrate path set --help`)
    #[arg(long, help_heading = "Paths", value_name = "NAME=SETTING,...")]
    pub policy: Vec<PolicyArg>,
    /// Address of the SOCKS5 proxy, or off
    #[arg(
        long,
        help_heading = "Proxy",
        value_name = "ADDR:PORT",
        default_value = "127.0.0.1:1080"
    )]
    pub socks: ProxyAddress,
    /// Address of the HTTP proxy, or off
    #[arg(long, help_heading = "Proxy", value_name = "ADDR:PORT", default_value = "off")]
    pub http: ProxyAddress,
    /// Password of both proxies: USER:PASSWORD, or @FILE with it
    #[arg(long, help_heading = "Proxy", value_name = "USER:PASSWORD|@FILE")]
    pub socks_auth: Option<ProxyAuth>,
    /// Let other machines use a proxy without a password
    #[arg(long, help_heading = "Proxy")]
    pub socks_open: bool,
    /// Traffic class by port or host, as in 22=interactive or .example.org=background; classes are
    /// conversational, interactive, streaming and background; the first match counts [default: guessed]
    #[arg(long, help_heading = RESEARCH, value_name = "PORT|HOST=CLASS")]
    pub class_rule: Vec<ClassRule>,
    /// Maximum connections of each proxy
    #[arg(long, help_heading = RESEARCH, value_name = "N", default_value_t = 4096, value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub max_connections: u32,
    /// Socket for `sumrate status` [default: one in $XDG_RUNTIME_DIR/sumrate]
    #[arg(long, help_heading = "Watching", value_name = "PATH")]
    pub status_socket: Option<PathBuf>,
    /// Write the addresses of the proxies to this file, as JSON, once they work
    #[arg(long, help_heading = SERVICE, value_name = "FILE")]
    pub ready_file: Option<PathBuf>,
    /// Directory for the data used by paths with a quota [default: $XDG_STATE_HOME/sumrate]
    #[arg(long, help_heading = SERVICE, value_name = "DIR")]
    pub state: Option<PathBuf>,
    /// Where flags come from, and how it stops.
    #[command(flatten)]
    pub daemon: DaemonArgs,
    /// Run as this user instead of root; files of other flags, except the link, must belong to that user
    #[arg(long, help_heading = SERVICE, value_name = "USER")]
    pub user: Option<String>,
    /// Print events as JSON, one object a line
    #[arg(long)]
    pub json: bool,
    /// Connections of programs that know nothing of it.
    #[command(flatten)]
    pub capture: CaptureArgs,
    /// Who may watch.
    #[command(flatten)]
    pub observe: ObserveArgs,
    /// How this end sends.
    #[command(flatten)]
    pub protocol: ProtocolArgs,
}
