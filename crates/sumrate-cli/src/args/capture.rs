//! Flags of `sumrate up` that take connections of programs that know nothing of it.

use std::net::{IpAddr, SocketAddr};

use clap::{ArgGroup, Args};
use ipnet::IpNet;
use sumrate_capture::guardian::Guardian;
use sumrate_capture::tun::Device;

/// What is taken, and how.
#[derive(Debug, Args)]
#[command(next_help_heading = "Whole machine (root)")]
#[command(group(ArgGroup::new("capture").args(["redirect", "tproxy", "tun"])))]
pub struct CaptureArgs {
    /// Take the TCP connections of this machine's programs (nftables, REDIRECT)
    #[arg(long)]
    pub redirect: bool,
    /// The same by routing (nftables, TPROXY)
    #[arg(long)]
    pub tproxy: bool,
    /// Take everything by a TUN device: TCP, UDP and questions to name servers
    #[arg(long)]
    pub tun: bool,
    /// Also take those of machines that this one is the gateway of
    #[arg(long, requires = "tproxy", conflicts_with_all = ["redirect", "tun"])]
    pub gateway: bool,
    /// Take only what programs of this user do; a name or a number, repeat it for several
    #[arg(long, value_name = "USER", requires = "capture")]
    pub only_user: Vec<String>,
    /// Take only what programs in this cgroup do, a path below /sys/fs/cgroup; repeat it for several
    #[arg(long, value_name = "CGROUP", requires = "capture", value_parser = cgroup)]
    pub only_cgroup: Vec<String>,
    /// Take only what goes to this network or address; repeat it for several
    #[arg(long, value_name = "NET", requires = "capture", value_parser = net)]
    pub only_to: Vec<IpNet>,
    /// Leave what goes to this network or address alone; repeat it for several. Private networks are
    /// left alone unless --only-to names what is taken
    #[arg(long, value_name = "NET", requires = "capture", value_parser = net)]
    pub direct: Vec<IpNet>,
    /// Also take questions to name servers, and ask this one, which the server has to reach
    #[arg(long, value_name = "ADDR[:PORT]", requires = "capture", value_parser = name_server)]
    pub dns: Option<SocketAddr>,
    /// Makes the rules, and removes them when this process is gone.
    #[arg(skip)]
    pub guardian: Option<Guardian>,
    /// The device of --tun.
    #[arg(skip)]
    pub device: Option<Device>,
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
            guardian: None,
            device: None,
        }
    }
}

/// A network, or an address alone.
pub(super) fn net(text: &str) -> Result<IpNet, String> {
    let parsed = text.parse().or_else(|_| text.parse::<IpAddr>().map(IpNet::from));
    parsed.map_err(|_| format!("`{text}` is no network; write 203.0.113.0/24 or an address"))
}

/// The characters that cgroups' names have in practice; nothing that could end a string of nftables.
fn cgroup(text: &str) -> Result<String, String> {
    let path = text.strip_prefix("/sys/fs/cgroup").unwrap_or(text).trim_matches('/');
    let fine = |c: char| c.is_ascii_alphanumeric() || "/._-@:".contains(c);
    if path.is_empty() || !path.chars().all(fine) || path.split('/').any(|part| part == "..") {
        return Err(format!("`{text}` is no cgroup; write for example user.slice/user-1000.slice"));
    }
    Ok(path.to_owned())
}

fn name_server(text: &str) -> Result<SocketAddr, String> {
    let parsed = text.parse().or_else(|_| text.parse::<IpAddr>().map(|ip| SocketAddr::new(ip, 53)));
    parsed
        .map_err(|_| format!("`{text}` is no address of a name server; write for example 9.9.9.9"))
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
