//! Flags of `sumrate up`.

use std::path::PathBuf;

use clap::Args;

use super::{
    CaptureArgs, DaemonArgs, ObserveArgs, PathArg, PolicyArg, ProtocolArgs, ProxyAddress, ProxyAuth,
};
use crate::classes::ClassRule;
use crate::private_text::PrivateText;

const EXAMPLE: &str = "\
Examples:
  sumrate up 'sumrate://203.0.113.9:7443?v=1#k=...&c=...'
  sumrate up @link.txt --path wifi=wlan0 --path lte=wwan0 --http 127.0.0.1:8080
  sumrate up @link.txt --backup wwan0
  sumrate up @link.txt --path a=192.168.1.7 --path b=10.0.0.2@203.0.113.10:7443
  sudo sumrate up @link.txt --redirect --only-user me

Then: curl -x socks5h://127.0.0.1:1080 https://example.org/
Other users of this machine can read a link given as an argument; @FILE hides it.";

/// Arguments of `sumrate up`.
#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLE)]
pub struct UpArgs {
    /// The join link that `sumrate serve` printed, or @FILE that holds it (@- is stdin)
    #[arg(value_name = "LINK|@FILE")]
    pub link: PrivateText,
    /// A path: NAME=IFACE or NAME=LOCAL_IP[@SERVER_IP[:PORT]], with ,backup behind it if it stands by;
    /// without one, every usable interface
    #[arg(long, value_name = "NAME=LOCAL")]
    pub path: Vec<PathArg>,
    /// A path, or without --path an interface, that stands by: it carries bytes only while none of the
    /// others works
    #[arg(long, value_name = "NAME")]
    pub backup: Vec<String>,
    /// How a path, or without --path an interface, is used, as in wwan0=backup,metered,quota=10G; also
    /// weight=3, rate=20M and never=background+streaming. `sumrate path set --help` says what they mean
    #[arg(long, value_name = "NAME=SETTING,...")]
    pub policy: Vec<PolicyArg>,
    /// Directory that keeps what paths have used of their quotas [default: $XDG_STATE_HOME/sumrate]
    #[arg(long, value_name = "DIR")]
    pub state: Option<PathBuf>,
    /// Address of the SOCKS5 proxy, or off
    #[arg(long, value_name = "ADDR:PORT", default_value = "127.0.0.1:1080")]
    pub socks: ProxyAddress,
    /// Address of the HTTP CONNECT proxy, or off
    #[arg(long, value_name = "ADDR:PORT", default_value = "off")]
    pub http: ProxyAddress,
    /// Password of both proxies: USER:PASSWORD or @FILE that holds it
    #[arg(long, value_name = "USER:PASSWORD|@FILE")]
    pub socks_auth: Option<ProxyAuth>,
    /// Let a proxy without password listen beyond this machine
    #[arg(long)]
    pub socks_open: bool,
    /// Traffic class of connections to a port or host: PORT=CLASS or HOST=CLASS (HOST being a name, with
    /// a dot in front all names below it too, or an address; taken connections have addresses only),
    /// CLASS being conversational, interactive, streaming or background; the
    /// first rule that fits counts, and what no rule names is guessed from its behaviour
    #[arg(long, value_name = "PORT|HOST=CLASS")]
    pub class_rule: Vec<ClassRule>,
    /// Most connections that each proxy carries at a time
    #[arg(long, value_name = "N", default_value_t = 1024, value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub max_connections: u32,
    /// Answer `sumrate status` on this socket [default: one in $XDG_RUNTIME_DIR/sumrate]
    #[arg(long, value_name = "PATH")]
    pub status_socket: Option<PathBuf>,
    /// Write the addresses in use to this file, as JSON, once the proxies serve
    #[arg(long, value_name = "FILE")]
    pub ready_file: Option<PathBuf>,
    /// Where flags come from, and how it stops.
    #[command(flatten)]
    pub daemon: DaemonArgs,
    /// Run as this user, without root's rights; root only. The files that other flags name must be
    /// that user's, except for the link's
    #[arg(long, value_name = "NAME")]
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
