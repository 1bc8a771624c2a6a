//! Which addresses the exit may reach. The public Internet is open; everything that could reach into
//! the server's own machine or network is closed unless a rule opens it.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::str::FromStr;
use std::sync::{Arc, PoisonError, RwLock};

use ipnet::IpNet;

/// One `--allow`: a network and, if named, one port of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AllowRule {
    net: IpNet,
    port: Option<u16>,
}

/// Why an `--allow` was refused.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a network; write ADDRESS, ADDRESS/BITS, ADDRESS:PORT or [IPV6/BITS]:PORT")]
pub struct AllowRuleError(String);

impl FromStr for AllowRule {
    type Err = AllowRuleError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let bad = || AllowRuleError(text.to_owned());
        if let Some(net) = parse_net(text) {
            return Ok(Self { net, port: None });
        }
        let (net, port) = text.rsplit_once(':').ok_or_else(bad)?;
        let net = match net.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            Some(six) => parse_net(six).filter(|net| matches!(net, IpNet::V6(_))),
            None => parse_net(net).filter(|net| matches!(net, IpNet::V4(_))),
        };
        let port: u16 = port.parse().map_err(|_| bad())?;
        match (net, port) {
            (Some(net), 1..) => Ok(Self { net, port: Some(port) }),
            _ => Err(bad()),
        }
    }
}

impl fmt::Display for AllowRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.net, self.port) {
            (net, None) => write!(f, "{net}"),
            (net @ IpNet::V4(_), Some(port)) => write!(f, "{net}:{port}"),
            (net @ IpNet::V6(_), Some(port)) => write!(f, "[{net}]:{port}"),
        }
    }
}

fn parse_net(text: &str) -> Option<IpNet> {
    text.parse::<IpNet>().ok().or_else(|| text.parse::<IpAddr>().ok().map(IpNet::from))
}

impl AllowRule {
    /// Whether the rule names this target; IPv4-mapped addresses count as IPv4.
    pub(super) fn covers(&self, target: SocketAddr) -> bool {
        self.opens(target.ip().to_canonical(), target.port())
    }

    fn opens(&self, address: IpAddr, port: u16) -> bool {
        self.net.contains(&address) && self.port.is_none_or(|only| only == port)
    }
}

/// Why the exit does not reach an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RefusedReason {
    /// 127.0.0.0/8, ::1.
    #[error("it is a loopback address")]
    Loopback,
    /// 0.0.0.0/8, ::.
    #[error("it is not an address of a host")]
    Unspecified,
    /// 169.254.0.0/16, fe80::/10.
    #[error("it is a link-local address")]
    LinkLocal,
    /// RFC 1918, fc00::/7, fec0::/10.
    #[error("it is in a private network")]
    Private,
    /// 100.64.0.0/10.
    #[error("it is in a carrier's shared address space")]
    Shared,
    /// 224.0.0.0/4, ff00::/8, broadcast.
    #[error("it is a multicast or broadcast address")]
    Multicast,
    /// A cloud's metadata service.
    #[error("it is a cloud metadata service")]
    Metadata,
    /// Documentation, benchmarking and reserved ranges, IPv6 outside 2000::/3 among them.
    #[error("it is in a reserved range")]
    Reserved,
    /// IPv6 that leads to an IPv4 address that is refused, or may.
    #[error("it is a tunnel to an IPv4 address that is not allowed")]
    Tunnel,
    /// An address of this server.
    #[error("it is the server's own address")]
    OwnAddress,
    /// Not among the credential's destinations.
    #[error("the credential does not include it")]
    NotForCredential,
    /// Port 0.
    #[error("port 0 cannot be connected to")]
    PortZero,
    /// A port that the server's operator keeps closed.
    #[error("the port is closed")]
    PortClosed,
}

impl RefusedReason {
    /// One word for machines.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Loopback => "loopback",
            Self::Unspecified => "unspecified",
            Self::LinkLocal => "link-local",
            Self::Private => "private",
            Self::Shared => "shared",
            Self::Multicast => "multicast",
            Self::Metadata => "metadata",
            Self::Reserved => "reserved",
            Self::Tunnel => "tunnel",
            Self::OwnAddress => "own-address",
            Self::NotForCredential => "credential",
            Self::PortZero => "port-zero",
            Self::PortClosed => "port-closed",
        }
    }
}

/// Ports that the exit reaches at nobody, but where a rule opens the target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ports(Vec<u16>);

impl Ports {
    /// Closed unless the operator opens it: mail between servers, which a shared link would send as
    /// spam in the name of this machine's address.
    pub const CLOSED: u16 = 25;

    /// [`Self::CLOSED`] and `denied`, without those `allowed`.
    pub fn new(denied: &[u16], allowed: &[u16]) -> Self {
        let closed = denied.iter().chain([&Self::CLOSED]).copied();
        Self(closed.filter(|port| !allowed.contains(port)).collect())
    }
}

impl Default for Ports {
    fn default() -> Self {
        Self::new(&[], &[])
    }
}

/// What the exit may reach.
#[derive(Debug, Clone, Default)]
pub struct Policy {
    /// Shared by clones, so that a reload reaches them all.
    rules: Arc<RwLock<Rules>>,
    advertised: Arc<RwLock<Vec<IpAddr>>>,
}

#[derive(Debug, Clone, Default)]
struct Rules {
    allow: Vec<AllowRule>,
    ports: Ports,
}

impl Policy {
    /// A policy with these rules; `advertised` are addresses of this server that its interfaces do
    /// not have (behind NAT).
    pub fn new(allow: Vec<AllowRule>, advertised: Vec<IpAddr>) -> Self {
        let rules = Rules { allow, ports: Ports::default() };
        let advertised = Arc::new(RwLock::new(advertised));
        Self { rules: Arc::new(RwLock::new(rules)), advertised }
    }

    /// Other addresses of this server that its interfaces do not have, from now on.
    pub fn replace_advertised(&self, advertised: Vec<IpAddr>) {
        *self.advertised.write().unwrap_or_else(PoisonError::into_inner) = advertised;
    }

    /// Other rules and closed ports from now on; connections that are there already stay.
    pub fn replace_rules(&self, allow: Vec<AllowRule>, ports: Ports) {
        *self.rules.write().unwrap_or_else(PoisonError::into_inner) = Rules { allow, ports };
    }

    /// Whether a rule opens `target`, whatever it is.
    pub(super) fn opens(&self, target: SocketAddr) -> bool {
        let rules = self.rules.read().unwrap_or_else(PoisonError::into_inner);
        rules.allow.iter().any(|rule| rule.covers(target))
    }

    /// Whether the exit may connect to `target`. `own` are the addresses of this machine.
    pub fn check(&self, target: SocketAddr, own: &[IpAddr]) -> Result<(), RefusedReason> {
        if target.port() == 0 {
            return Err(RefusedReason::PortZero);
        }
        if self.opens(target) {
            return Ok(());
        }
        let address = target.ip().to_canonical();
        if let Some(reason) = refused_range(address) {
            return Err(reason);
        }
        let inner = embedded_v4(address).map(IpAddr::V4);
        let is_own = |own: &IpAddr| {
            let own = own.to_canonical();
            own == address || Some(own) == inner
        };
        let advertised = self.advertised.read().unwrap_or_else(PoisonError::into_inner);
        if own.iter().chain(advertised.iter()).any(is_own) {
            return Err(RefusedReason::OwnAddress);
        }
        let rules = self.rules.read().unwrap_or_else(PoisonError::into_inner);
        if rules.ports.0.contains(&target.port()) {
            return Err(RefusedReason::PortClosed);
        }
        Ok(())
    }
}

/// Metadata services outside the link-local range; 169.254.169.254 is named for its message.
const METADATA_V4: [Ipv4Addr; 4] = [
    Ipv4Addr::new(169, 254, 169, 254),
    Ipv4Addr::new(168, 63, 129, 16),
    Ipv4Addr::new(100, 100, 100, 200),
    Ipv4Addr::new(192, 0, 0, 192),
];
const METADATA_V6: [Ipv6Addr; 2] = [
    Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254),
    Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254),
];

fn refused_range(address: IpAddr) -> Option<RefusedReason> {
    match address {
        IpAddr::V4(v4) => refused_v4(v4),
        IpAddr::V6(v6) => refused_v6(v6),
    }
}

fn refused_v4(address: Ipv4Addr) -> Option<RefusedReason> {
    let [a, b, c, _] = address.octets();
    Some(match (a, b, c) {
        _ if METADATA_V4.contains(&address) => RefusedReason::Metadata,
        (0, ..) => RefusedReason::Unspecified,
        (127, ..) => RefusedReason::Loopback,
        (10, ..) | (192, 168, _) => RefusedReason::Private,
        (172, 16..=31, _) => RefusedReason::Private,
        (100, 64..=127, _) => RefusedReason::Shared,
        (169, 254, _) => RefusedReason::LinkLocal,
        (192, 0, 0 | 2) | (192, 88, 99) | (198, 51, 100) | (203, 0, 113) => RefusedReason::Reserved,
        (198, 18..=19, _) => RefusedReason::Reserved,
        _ if address.is_broadcast() => RefusedReason::Multicast,
        (224..=239, ..) => RefusedReason::Multicast,
        (240.., ..) => RefusedReason::Reserved,
        _ => return None,
    })
}

/// Whether the exit refuses the address wherever it is: no address of the Internet's.
pub(crate) fn is_private(address: IpAddr) -> bool {
    refused_range(address.to_canonical()).is_some()
}

/// The IPv4 address that a gateway (NAT64, RFC 6052; 6to4, RFC 3056) turns an IPv6 address into.
pub(super) fn embedded_v4(address: IpAddr) -> Option<Ipv4Addr> {
    let IpAddr::V6(address) = address else { return None };
    let (high, low) = match address.segments() {
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] | [0x2002, high, low, ..] => (high, low),
        _ => return None,
    };
    Some(Ipv4Addr::from((u32::from(high) << 16) | u32::from(low)))
}

fn refused_v6(address: Ipv6Addr) -> Option<RefusedReason> {
    let s = address.segments();
    if let Some(inner) = embedded_v4(address.into()) {
        return refused_v4(inner).map(|_| RefusedReason::Tunnel);
    }
    Some(match s {
        _ if METADATA_V6.contains(&address) => RefusedReason::Metadata,
        [0, 0, 0, 0, 0, 0, 0, 0] => RefusedReason::Unspecified,
        [0, 0, 0, 0, 0, 0, 0, 1] => RefusedReason::Loopback,
        // IPv4-compatible and IPv4-translated. IPv4-mapped ones were judged as IPv4.
        [0, 0, 0, 0, 0, 0, _, _] | [0, 0, 0, 0, 0xffff, 0, _, _] => RefusedReason::Tunnel,
        [0x64, 0xff9b, 1, ..] => RefusedReason::Tunnel,
        // ISATAP (RFC 5214), in any network.
        [.., 0 | 0x200, 0x5efe, _, _] => RefusedReason::Tunnel,
        [0x2001, 0, ..] => RefusedReason::Tunnel,
        // IETF protocol assignments (RFC 2928), as 192.0.0.0/24 is: the gateway that forwards ports
        // (PCP, RFC 7723), relays (AMT, TURN), benchmarks, ORCHID's names of keys. No host is in it.
        [0x2001, 1..=0x1ff, ..] => RefusedReason::Reserved,
        [0x2001, 0xdb8, ..] | [0x3fff, 0..=0xfff, ..] => RefusedReason::Reserved,
        [0xfc00..=0xfdff, ..] | [0xfec0..=0xfeff, ..] => RefusedReason::Private,
        [0xfe80..=0xfebf, ..] => RefusedReason::LinkLocal,
        [0xff00..=0xffff, ..] => RefusedReason::Multicast,
        // The Internet's unicast addresses. What else has a route here is an overlay's or somebody's
        // own network (200::/7, say).
        [0x2000..=0x3fff, ..] => return None,
        _ => RefusedReason::Reserved,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(policy: &Policy, target: &str) -> Result<(), RefusedReason> {
        let own = ["8.8.4.4".parse().unwrap(), "2a00::77".parse().unwrap()];
        policy.check(target.parse().unwrap(), &own)
    }

    #[test]
    fn table_of_refused_addresses() {
        use RefusedReason as R;
        let table = [
            ("127.0.0.1:80", R::Loopback),
            ("127.255.1.2:80", R::Loopback),
            ("[::1]:80", R::Loopback),
            ("0.0.0.0:80", R::Unspecified),
            ("0.1.2.3:80", R::Unspecified),
            ("[::]:80", R::Unspecified),
            ("10.0.0.1:80", R::Private),
            ("172.16.0.1:80", R::Private),
            ("172.31.255.255:80", R::Private),
            ("192.168.1.1:80", R::Private),
            ("[fd00::1]:80", R::Private),
            ("[fc00::1]:80", R::Private),
            ("[fec0::1]:80", R::Private),
            ("100.64.0.1:80", R::Shared),
            ("100.127.255.255:80", R::Shared),
            ("169.254.1.1:80", R::LinkLocal),
            ("[fe80::1]:80", R::LinkLocal),
            ("[febf::1]:80", R::LinkLocal),
            ("169.254.169.254:80", R::Metadata),
            ("168.63.129.16:80", R::Metadata),
            ("100.100.100.200:80", R::Metadata),
            ("192.0.0.192:80", R::Metadata),
            ("[fd00:ec2::254]:80", R::Metadata),
            ("[fd20:ce::254]:80", R::Metadata),
            ("224.0.0.1:80", R::Multicast),
            ("239.255.255.255:80", R::Multicast),
            ("255.255.255.255:80", R::Multicast),
            ("[ff02::1]:80", R::Multicast),
            ("240.0.0.1:80", R::Reserved),
            ("192.0.2.1:80", R::Reserved),
            ("198.19.0.1:80", R::Reserved),
            ("203.0.113.1:80", R::Reserved),
            ("[2001:db8::1]:80", R::Reserved),
            ("[3fff:1::1]:80", R::Reserved),
            ("[5f00::1]:80", R::Reserved),
            ("[100::1]:80", R::Reserved),
            ("[100:0:0:1::1]:80", R::Reserved),
            ("[200::1]:80", R::Reserved),
            ("[3ff:ffff::1]:80", R::Reserved),
            ("[1fff:ffff::1]:80", R::Reserved),
            ("[4000::1]:80", R::Reserved),
            ("[fbff::1]:80", R::Reserved),
            ("[fe00::1]:80", R::Reserved),
            ("192.0.0.9:5351", R::Reserved),
            ("[2001:1::1]:5351", R::Reserved),
            ("[2001:1ff:ffff::1]:80", R::Reserved),
            ("[2001:10::1]:80", R::Reserved),
            ("[2001:2f:ffff::1]:80", R::Reserved),
            ("[::1:0:0:0]:80", R::Reserved),
            ("[64:ff9b::1:0:0]:80", R::Reserved),
            ("[::ffff:127.0.0.1]:80", R::Loopback),
            ("[::ffff:10.0.0.1]:80", R::Private),
            ("[::ffff:169.254.169.254]:80", R::Metadata),
            ("[::127.0.0.1]:80", R::Tunnel),
            ("[::8.8.8.8]:80", R::Tunnel),
            ("[::ffff:0:10.0.0.1]:80", R::Tunnel),
            ("[64:ff9b::10.0.0.1]:80", R::Tunnel),
            ("[64:ff9b:1::1]:80", R::Tunnel),
            ("[2002:7f00:1::]:80", R::Tunnel),
            ("[64:ff9b::127.0.0.1]:80", R::Tunnel),
            ("[64:ff9b::169.254.169.254]:80", R::Tunnel),
            ("[2002:a9fe:a9fe::1]:80", R::Tunnel),
            ("[2002:c0a8:101::1]:80", R::Tunnel),
            ("[2001:0:1::1]:80", R::Tunnel),
            ("[2606:4700::5efe:a00:1]:80", R::Tunnel),
            ("[2606:4700::200:5efe:a00:1]:80", R::Tunnel),
            ("[ff02::fb%1]:80", R::Multicast),
            ("[fe80::1%7]:80", R::LinkLocal),
            ("8.8.4.4:80", R::OwnAddress),
            ("[2a00::77]:80", R::OwnAddress),
            ("[::ffff:8.8.4.4]:80", R::OwnAddress),
            ("[64:ff9b::8.8.4.4]:80", R::OwnAddress),
            ("[2002:808:404::1]:80", R::OwnAddress),
            ("[64:ff9b::9.9.9.9]:80", R::OwnAddress),
            ("9.9.9.9:80", R::OwnAddress),
            ("1.1.1.1:0", R::PortZero),
        ];
        let policy = Policy::new(Vec::new(), vec!["9.9.9.9".parse().unwrap()]);
        for (target, reason) in table {
            assert_eq!(check(&policy, target), Err(reason), "{target}");
        }
    }

    #[test]
    fn table_of_open_addresses() {
        let policy = Policy::default();
        for target in [
            "1.1.1.1:443",
            "8.8.8.8:53",
            "172.15.0.1:80",
            "172.32.0.1:80",
            "100.63.0.1:80",
            "100.128.0.1:80",
            "223.255.255.255:80",
            "[2606:4700::1111]:443",
            "[2000::1]:443",
            "[3ffe::1]:443",
            "[2001:200::1]:443",
            "[2001:4860:4860::8888]:443",
            "[::ffff:1.1.1.1]:443",
            "[64:ff9b::1.1.1.1]:443",
            "[2002:101:101::1]:443",
        ] {
            assert_eq!(check(&policy, target), Ok(()), "{target}");
        }
    }

    #[test]
    fn allow_opens_exactly_what_it_names() {
        let rules = ["10.1.0.0/16", "127.0.0.1:8080", "[fd00::/8]:443", "8.8.4.4"];
        let allow = rules.iter().map(|rule| rule.parse().unwrap()).collect();
        let policy = Policy::new(allow, Vec::new());
        for open in
            ["10.1.2.3:22", "[::ffff:10.1.2.3]:22", "127.0.0.1:8080", "[fd12::1]:443", "8.8.4.4:1"]
        {
            assert_eq!(check(&policy, open), Ok(()), "{open}");
        }
        for shut in
            ["10.2.0.1:22", "127.0.0.1:8081", "127.0.0.2:8080", "[fd12::1]:444", "10.1.1.1:0"]
        {
            assert!(check(&policy, shut).is_err(), "{shut}");
        }
    }

    #[test]
    fn port_25_is_closed_unless_it_is_opened() {
        let rule = |text: &str| vec![text.parse().unwrap()];
        let policy = Policy::new(rule("192.168.7.5"), Vec::new());
        for closed in ["1.1.1.1:25", "[2606:4700::1111]:25", "[::ffff:1.1.1.1]:25"] {
            assert_eq!(check(&policy, closed), Err(RefusedReason::PortClosed), "{closed}");
        }
        assert_eq!(check(&policy, "192.168.7.5:25"), Ok(()), "a rule opens it");
        assert_eq!(check(&policy, "10.0.0.1:25"), Err(RefusedReason::Private));
        policy.replace_rules(rule("1.1.1.0/24:25"), Ports::new(&[445, 6667], &[]));
        assert_eq!(check(&policy, "1.1.1.1:25"), Ok(()));
        for closed in ["1.1.1.1:445", "8.8.8.8:6667", "8.8.8.8:25"] {
            assert_eq!(check(&policy, closed), Err(RefusedReason::PortClosed), "{closed}");
        }
        policy.replace_rules(Vec::new(), Ports::new(&[], &[25]));
        assert_eq!(check(&policy, "1.1.1.1:25"), Ok(()));
    }

    #[test]
    fn malformed_rules_are_refused() {
        for bad in
            ["", "x", "10.0.0.0/33", "10.0.0.1:0", "10.0.0.1:x", "fd00::/8:443:x", "[10.0.0.1]:5"]
        {
            assert!(bad.parse::<AllowRule>().is_err(), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn a_mapped_address_is_judged_as_the_ipv4_one(bits: u32, port in 1_u16..) {
            let v4 = Ipv4Addr::from(bits);
            let policy = Policy::default();
            let plain = policy.check(SocketAddr::new(IpAddr::V4(v4), port), &[]);
            let mapped = policy.check(SocketAddr::new(IpAddr::V6(v4.to_ipv6_mapped()), port), &[]);
            prop_assert_eq!(plain, mapped);
        }

        /// Of IPv6 nothing is open but what is the Internet's, and what leads to IPv4 that is.
        #[test]
        fn only_global_unicast_addresses_are_open(bits: u128, port in 1_u16..) {
            let six = Ipv6Addr::from(bits);
            let open = Policy::default().check(SocketAddr::new(IpAddr::V6(six), port), &[]).is_ok();
            let internet = bits >> 125 == 0b001;
            let nat64 = bits >> 32 == 0x64_ff9b_0000_0000_0000_0000;
            prop_assert!(!open || internet || nat64 || six.to_ipv4_mapped().is_some(), "{six}");
        }

        #[test]
        fn rules_never_panic(text in "\\PC{0,40}") {
            let _ = text.parse::<AllowRule>();
        }
    }
}
