//! Flags of `sumrate up` that take connections of programs that know nothing of it.

use std::net::{IpAddr, SocketAddr};

use clap::{ArgGroup, Args, ValueEnum};
use ipnet::IpNet;
use sumrate_capture::guardian::{Guardian, WhenDown};
use sumrate_capture::tun::Device;

/// What is taken, and how.
#[derive(Debug, Args)]
#[command(next_help_heading = "Whole machine (root)")]
#[command(group(ArgGroup::new("capture").args(["redirect", "tproxy", "tun"])))]
pub struct CaptureArgs {
    /// Capture TCP connections of this machine's programs (nftables REDIRECT)
    #[arg(long)]
    pub redirect: bool,
    /// Capture TCP connections by routing (nftables TPROXY)
    #[arg(long)]
    pub tproxy: bool,
    /// Capture TCP, UDP and DNS with a TUN device
    #[arg(long)]
    pub tun: bool,
    /// Also capture connections of machines behind this gateway
    #[arg(long, requires = "tproxy", conflicts_with_all = ["redirect", "tun"])]
    pub gateway: bool,
    /// Capture only programs of this user (name or number); repeat it for several
    #[arg(long, value_name = "USER", requires = "capture")]
    pub only_user: Vec<String>,
    /// Capture only programs in this cgroup (path below /sys/fs/cgroup); repeat it for several
    #[arg(long, value_name = "CGROUP", requires = "capture", value_parser = cgroup)]
    pub only_cgroup: Vec<String>,
    /// Capture only connections to this network or address; repeat it for several
    #[arg(long, value_name = "NET", requires = "capture", value_parser = net)]
    pub only_to: Vec<IpNet>,
    /// Do not capture connections to this network or address; repeat it for several. Private networks
    /// are not captured unless --only-to names them
    #[arg(long, value_name = "NET", requires = "capture", value_parser = net)]
    pub direct: Vec<IpNet>,
    /// Also capture DNS questions, and send them to this name server through the server
    #[arg(long, value_name = "ADDR[:PORT]", requires = "capture", value_parser = name_server)]
    pub dns: Option<SocketAddr>,
    /// Refuse UDP port 443 (HTTP/3), so that browsers use TCP, which is captured
    #[arg(long, requires = "capture", conflicts_with = "tun")]
    pub refuse_quic: bool,
    /// Captured programs before the first connection to the server and after a crash: refuse blocks their
    /// connections, direct lets them out
    #[arg(long, value_name = "ACTION", requires = "capture", value_enum, default_value_t)]
    pub when_down: WhenDownArg,
    /// Makes the rules, and removes them when this process stops.
    #[arg(skip)]
    pub guardian: Option<Guardian>,
    /// The device of --tun.
    #[arg(skip)]
    pub device: Option<Device>,
}

/// What programs meet when nobody takes their connections any more.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum WhenDownArg {
    /// Block connections that would have been captured
    #[default]
    Refuse,
    /// Let them out directly
    Direct,
}

impl From<WhenDownArg> for WhenDown {
    fn from(arg: WhenDownArg) -> Self {
        match arg {
            WhenDownArg::Refuse => Self::Refuse,
            WhenDownArg::Direct => Self::Direct,
        }
    }
}

impl Clone for CaptureArgs {
    /// Without guardian and device, which belong to whoever was started with them.
    fn clone(&self) -> Self {
        Self {
            redirect: self.redirect,
            tproxy: self.tproxy,
            tun: self.tun,
            gateway: self.gateway,
            only_user: self.only_user.clone(),
            only_cgroup: self.only_cgroup.clone(),
            only_to: self.only_to.clone(),
            direct: self.direct.clone(),
            dns: self.dns,
            refuse_quic: self.refuse_quic,
            when_down: self.when_down,
            guardian: None,
            device: None,
        }
    }
}

/// A network, or an address alone.
pub(super) fn net(text: &str) -> Result<IpNet, String> {
    let parsed = text.parse().or_else(|_| text.parse::<IpAddr>().map(IpNet::from));
    parsed.map_err(|_| format!("`{text}` is not a network; write 203.0.113.0/24 or an address"))
}

/// The characters that cgroups' names have in practice; nothing that could end a string of nftables.
fn cgroup(text: &str) -> Result<String, String> {
    let path = text.strip_prefix("/sys/fs/cgroup").unwrap_or(text).trim_matches('/');
    let fine = |c: char| c.is_ascii_alphanumeric() || "/._-@:".contains(c);
    if path.is_empty() || !path.chars().all(fine) || path.split('/').any(|part| part == "..") {
        return Err(format!(
            "`{text}` is not a cgroup; write for example user.slice/user-1000.slice"
        ));
    }
    Ok(path.to_owned())
}

fn name_server(text: &str) -> Result<SocketAddr, String> {
    let parsed = text.parse().or_else(|_| text.parse::<IpAddr>().map(|ip| SocketAddr::new(ip, 53)));
    parsed.map_err(|_| {
        format!("`{text}` is not the address of a name server; write for example 9.9.9.9")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_named_is_checked() {
        assert_eq!(net("203.0.113.7").unwrap().to_string(), "203.0.113.7/32");
        assert!(net("example.org").is_err());
        assert_eq!(cgroup("/sys/fs/cgroup/user.slice/").unwrap(), "user.slice");
        for bad in ["", "/", "a\"b", "a b", "../x", "a\nb"] {
            assert!(cgroup(bad).is_err(), "{bad}");
        }
        assert_eq!(name_server("2620:fe::fe").unwrap().to_string(), "[2620:fe::fe]:53");
        assert_eq!(name_server("9.9.9.9:5353").unwrap().port(), 5353);
        assert!(name_server("dns.example").is_err());
    }
}
