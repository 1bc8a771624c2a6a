//! nftables and routes of one guardian, as commands: how they are made, removed, and found when their
//! guardian is gone.
//!
//! Everything carries the guardian's process id: the nftables table in its name, with the time at which
//! the process started, the routing table in its number, the rules in their preference.

use std::fmt::Write as _;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

use ipnet::IpNet;

use crate::earlier::Ends;
use crate::owner::Owner;
use crate::refusal;
use crate::selection::Selection;

/// Mark of the daemon's own sockets: they are never taken.
pub const MARK_OWN: u32 = 0x5375_6d52;
/// Mark of packets that are led to the daemon by a route.
pub(crate) const MARK_TAKEN: u32 = 0x5375_6d54;

/// The TUN device's addresses, which belong to nobody else: they are kept free for benchmarks and for
/// local use (RFC 2544, RFC 4193).
pub const TUN_OWN: (Ipv4Addr, Ipv6Addr) =
    (Ipv4Addr::new(198, 19, 253, 1), Ipv6Addr::new(0xfd53, 0x756d, 0x7261, 0, 0, 0, 0, 1));

/// Routing tables are numbered from here on, by process id (at most 22 bits).
const TABLE_BASE: u32 = 0x5300_0000;
/// Preference of the first rule; the kernel's own begin at 32766.
const PREFERENCE_BASE: u32 = 16_000;
const PREFERENCES: u32 = 4_000;
/// A segment that does not begin a connection (RFC 9293 §3.5).
const GOES_ON: &str = "tcp flags & (syn | ack) != syn";
/// A segment that begins one.
pub(crate) const BEGINS: &str = "tcp flags & (syn | ack) == syn";
/// So many preferences are one guardian's.
pub(crate) const OF_EACH: u32 = 4;
/// Metric of routes that count when the device, and its routes with it, is gone. The highest one is the
/// kernel's own in IPv6, which `ip route flush` leaves alone.
const LAST_METRIC: u32 = u32::MAX - 1;

/// How connections are taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Method {
    /// Their destination is changed on the way out (nftables, REDIRECT).
    Redirect,
    /// They are routed to this machine as they are (nftables, TPROXY).
    Tproxy {
        /// So are those of machines that this one is the gateway of.
        gateway: bool,
    },
    /// Everything is routed into this TUN device; they are redirected on the way.
    Tun(String),
}

/// Everything that the guardian has to know before it can make rules.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// How.
    pub method: Method,
    /// Whose, and where to.
    pub selection: Selection,
    /// Questions to name servers are taken too.
    pub dns: bool,
    /// HTTP/3 (UDP to port 443) is refused, so that programs use TCP.
    pub refuse_quic: bool,
    /// What programs meet when the daemon ends without an orderly stop.
    pub when_down: WhenDown,
}

/// What programs meet whose connections were taken, when the daemon crashed, failed or was killed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum WhenDown {
    /// Their connections are refused until somebody lifts that.
    #[default]
    Refuse,
    /// They reach the net directly.
    Direct,
}

/// Ports of the daemon on 127.0.0.1 and ::1; 0 where there is none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Ports {
    /// TCP, for IPv4 and IPv6.
    pub tcp: [u16; 2],
    /// Questions to name servers over UDP, for IPv4 and IPv6.
    pub dns: [u16; 2],
    /// Questions to name servers over TCP, for IPv4 and IPv6.
    pub dns_tcp: [u16; 2],
}

impl Ports {
    /// As the guardian is told.
    pub(crate) fn message(self) -> Vec<u8> {
        let numbers = [self.tcp, self.dns, self.dns_tcp].concat();
        numbers.iter().flat_map(|port| port.to_be_bytes()).collect()
    }

    /// What [`Ports::message`] made.
    pub(crate) fn of_message(message: &[u8; 12]) -> Self {
        let port = |at: usize| u16::from_be_bytes([message[at], message[at + 1]]);
        Self { tcp: [port(0), port(2)], dns: [port(4), port(6)], dns_tcp: [port(8), port(10)] }
    }
}

/// A command: its words, and what it reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Step {
    pub(crate) words: Vec<String>,
    pub(crate) input: String,
}

impl Step {
    pub(crate) fn ip(family: Family, words: &str) -> Self {
        let words = ["ip", family.flag()].into_iter().chain(words.split_whitespace());
        Self { words: words.map(str::to_owned).collect(), input: String::new() }
    }

    fn nft(input: String) -> Self {
        Self { words: ["nft", "-f", "-"].map(str::to_owned).to_vec(), input }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Family {
    V4,
    V6,
}

impl Family {
    pub(crate) const BOTH: [Self; 2] = [Self::V4, Self::V6];

    fn of(net: &IpNet) -> Self {
        if matches!(net, IpNet::V4(_)) { Self::V4 } else { Self::V6 }
    }

    fn of_address(address: &SocketAddr) -> Self {
        if address.is_ipv4() { Self::V4 } else { Self::V6 }
    }

    pub(crate) fn index(self) -> usize {
        usize::from(self == Self::V6)
    }

    /// The flag of `ip`.
    pub(crate) fn flag(self) -> &'static str {
        if self == Self::V4 { "-4" } else { "-6" }
    }

    /// For people.
    pub(crate) fn title(self) -> &'static str {
        if self == Self::V4 { "IPv4" } else { "IPv6" }
    }

    /// In nftables' language: the family, the header, the daemon's address.
    pub(crate) fn words(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Self::V4 => ("ipv4", "ip", "127.0.0.1"),
            Self::V6 => ("ipv6", "ip6", "[::1]"),
        }
    }
}

pub(crate) fn routing_table(pid: u32) -> u32 {
    TABLE_BASE | (pid & 0xff_ffff)
}

/// The guardian whose routing table this is, if it is one's.
fn routing_owner(table: &str) -> Option<u32> {
    let number: u32 = table.parse().ok()?;
    (number & 0xff00_0000 == TABLE_BASE).then_some(number & 0xff_ffff)
}

/// What `ip -4 rule` and `ip -6 rule` list.
pub(crate) type Listed = [String; 2];

/// Preference and table of a rule as it is listed.
fn rule(line: &str) -> Option<(u32, &str)> {
    let (preference, rest) = line.split_once(':')?;
    let table = rest.split_whitespace().skip_while(|word| *word != "lookup").nth(1)?;
    Some((preference.trim().parse().ok()?, table))
}

/// The first of the preferences that a guardian's rules get: those of its number or, as another's may
/// have the same, the next that no rule has.
pub(crate) fn free_preference(pid: u32, listed: &Listed) -> u32 {
    let lines = listed.iter().flat_map(|text| text.lines());
    let taken: Vec<u32> = lines.filter_map(rule).map(|(preference, _)| preference).collect();
    let first = |number: u32| PREFERENCE_BASE + (pid + number) % PREFERENCES * OF_EACH;
    let is_free = |first: &u32| !taken.iter().any(|one| (*first..first + OF_EACH).contains(one));
    (0..PREFERENCES).map(first).find(is_free).unwrap_or(first(0))
}

/// What was found on this machine that rules have to fit.
#[derive(Debug, Clone, Default)]
pub(crate) struct Found {
    /// Rules get this preference and those behind it.
    pub(crate) preference: u32,
    /// Connections that stay as they are.
    pub(crate) earlier: Vec<Ends>,
}

/// The commands that take connections from now on.
pub(crate) fn installation(plan: &Plan, ports: Ports, owner: Owner, found: &Found) -> Vec<Step> {
    let (mut steps, pid, preference) = (Vec::new(), owner.pid, found.preference);
    if let Method::Tun(device) = &plan.method {
        for family in Family::BOTH.into_iter().filter(|family| ports.tcp[family.index()] != 0) {
            steps.extend(tun_rules(plan, family, pid, preference));
            steps.extend(tun_routes(plan, device, family, pid));
        }
    }
    if let Method::Tproxy { .. } = plan.method {
        let table = routing_table(pid);
        for family in Family::BOTH.into_iter().filter(|family| ports.tcp[family.index()] != 0) {
            let route = format!("route add local default dev lo table {table}");
            let rule = format!("rule add pref {preference} fwmark {MARK_TAKEN:#x} lookup {table}");
            steps.extend([Step::ip(family, &route), Step::ip(family, &rule)]);
        }
    }
    // Last, so that nothing is led to where no route goes yet.
    steps.push(taking(plan, ports, owner, found));
    steps
}

/// The command that makes the table that takes, in the place of the owner's.
pub(crate) fn taking(plan: &Plan, ports: Ports, owner: Owner, found: &Found) -> Step {
    let chains = chains(plan, ports, &found.earlier);
    replacement(owner, &format!("table inet {} {{\n{chains}}}\n", owner.table()))
}

/// The command that puts a table in the place of the owner's, in one step.
fn replacement(owner: Owner, text: &str) -> Step {
    let name = owner.table();
    Step::nft(format!("table inet {name}\ndelete table inet {name}\n{text}"))
}

/// The command that refuses, in one step, what was taken until now.
pub(crate) fn refusal(plan: &Plan, owner: Owner) -> Step {
    let chains = refusal::instead(plan);
    replacement(owner, &format!("table inet {} {{\n{chains}}}\n", owner.table()))
}

/// The command that removes the nftables table.
pub(crate) fn removal_of_table(owner: Owner) -> Step {
    Step::nft(format!("delete table inet {}\n", owner.table()))
}

/// The commands that remove routes and rules. Of those that are listed those go that lead to the guardian's own
/// table, and those that lead to the main table from among the same preferences: unless another guardian
/// that began at the same moment has these, too; then they go with the last one.
pub(crate) fn removal_of_routes(pid: u32, listed: &Listed) -> Vec<Step> {
    let mut steps = Vec::new();
    let own = routing_table(pid).to_string();
    for (family, text) in Family::BOTH.into_iter().zip(listed) {
        let rules: Vec<(u32, &str)> = text.lines().filter_map(rule).collect();
        let is_alone = |preference: u32| {
            let place = preference / OF_EACH;
            let there = rules.iter().filter(|(other, _)| other / OF_EACH == place);
            let mut owners = there.filter_map(|(_, table)| routing_owner(table)).peekable();
            owners.peek().is_some() && owners.all(|one| routing_table(one) == routing_table(pid))
        };
        for (preference, table) in &rules {
            if *table == own || (*table == "main" && is_alone(*preference)) {
                steps.push(Step::ip(family, &format!("rule del pref {preference} lookup {table}")));
            }
        }
        steps.push(Step::ip(family, &format!("route flush table {own}")));
    }
    steps
}

/// Guardians that made the rules that `ip rule` names.
pub(crate) fn owners_of_rules(listed: &str) -> Vec<u32> {
    listed.lines().filter_map(rule).filter_map(|(_, table)| routing_owner(table)).collect()
}

/// The sets and chains that take.
pub(crate) fn chains(plan: &Plan, ports: Ports, earlier: &[Ends]) -> String {
    let mut text = String::new();
    if plan.method != Method::Redirect {
        text += &earlier_sets(earlier);
    }
    if plan.dns {
        text += &dns_chain(plan, ports);
    }
    match plan.method {
        Method::Redirect => text += &redirect_chains(plan, ports),
        Method::Tproxy { gateway } => text += &tproxy_chains(plan, ports, gateway),
        Method::Tun(_) => text += &(tun_chains(plan) + &redirect_chains(plan, ports)),
    }
    text + &refusal::beside(plan, ports.tcp)
}

pub(crate) fn chain(name: &str, head: &str, rules: &[String]) -> String {
    let mut text = format!("  chain {name} {{\n");
    for line in std::iter::once(head)
        .filter(|head| !head.is_empty())
        .chain(rules.iter().map(String::as_str))
    {
        let _ = writeln!(text, "    {line}");
    }
    text + "  }\n"
}

fn redirect_chains(plan: &Plan, ports: Ports) -> String {
    let take = by_family(ports.tcp, |(family, _, _), port| {
        format!("meta nfproto {family} meta l4proto tcp redirect to :{port}")
    });
    let selected = match &plan.method {
        // Routes and marks have selected: a program that binds itself to another interface is refused.
        Method::Tun(device) => vec![
            format!("oifname \"{device}\" goto take"),
            format!("meta mark {MARK_TAKEN:#x} goto take"),
        ],
        _ => selected(plan),
    };
    let head = "type nat hook output priority -100; policy accept;";
    let rules = [exemptions(plan), selected].concat();
    chain("redirected", head, &rules) + &chain("take", "", &take)
}

fn by_family(ports: [u16; 2], rule: impl Fn((&str, &str, &str), u16) -> String) -> Vec<String> {
    let families = Family::BOTH.into_iter().zip(ports).filter(|(_, port)| *port != 0);
    families.map(|(family, port)| rule(family.words(), port)).collect()
}

/// What passes untouched: the daemon's own, this machine's own, what is reached directly.
fn exemptions(plan: &Plan) -> Vec<String> {
    let mut rules =
        vec![format!("meta mark {MARK_OWN:#x} return"), "meta l4proto != tcp return".to_owned()];
    rules.extend(destinations(&plan.selection));
    rules
}

pub(crate) fn destinations(selection: &Selection) -> Vec<String> {
    let mut rules =
        vec!["fib daddr type { local, broadcast, multicast, anycast } return".to_owned()];
    rules.extend(networks(&selection.exempt(), &selection.only_to));
    rules
}

/// What passes because it goes to one of the networks `direct`, or to none of `only_to`, if there are any.
pub(crate) fn networks(direct: &[IpNet], only_to: &[IpNet]) -> Vec<String> {
    let mut rules = Vec::new();
    for family in Family::BOTH {
        let (name, header, _) = family.words();
        let of_family = |nets: &[IpNet]| -> Vec<String> {
            let nets = IpNet::aggregate(&nets.to_vec());
            nets.iter().filter(|net| Family::of(net) == family).map(IpNet::to_string).collect()
        };
        let direct = of_family(direct);
        if !direct.is_empty() {
            rules.push(format!("{header} daddr {{ {} }} return", direct.join(", ")));
        }
        let within = of_family(only_to);
        match (only_to.is_empty(), within.is_empty()) {
            (true, _) => {}
            (false, true) => rules.push(format!("meta nfproto {name} return")),
            (false, false) => {
                rules.push(format!("{header} daddr != {{ {} }} return", within.join(", ")));
            }
        }
    }
    rules
}

/// Conditions of which any selects a program; one that is always true if all are selected.
pub(crate) fn selectors(selection: &Selection) -> Vec<String> {
    let mut conditions = Vec::new();
    if !selection.users.is_empty() {
        let users: Vec<String> = selection.users.iter().map(u32::to_string).collect();
        conditions.push(format!("meta skuid {{ {} }} ", users.join(", ")));
    }
    for cgroup in &selection.cgroups {
        let path = cgroup.trim_matches('/');
        let level = path.split('/').count();
        conditions.push(format!("socket cgroupv2 level {level} \"{path}\" "));
    }
    if conditions.is_empty() { vec![String::new()] } else { conditions }
}

fn selected(plan: &Plan) -> Vec<String> {
    selectors(&plan.selection).iter().map(|condition| format!("{condition}goto take")).collect()
}

/// Questions to name servers, also to one on this machine or its own network, which would ask on without
/// us; but not to those that the user excepts.
fn dns_chain(plan: &Plan, ports: Ports) -> String {
    let mut rules = vec![format!("meta mark {MARK_OWN:#x} return")];
    rules.extend(networks(&plan.selection.direct, &plan.selection.only_to));
    for condition in selectors(&plan.selection) {
        let udp = by_family(ports.dns, |(family, _, _), port| {
            format!("{condition}meta nfproto {family} udp dport 53 redirect to :{port}")
        });
        let tcp = by_family(ports.dns_tcp, |(family, _, _), port| {
            format!("{condition}meta nfproto {family} tcp dport 53 redirect to :{port}")
        });
        rules.extend(udp);
        rules.extend(tcp);
    }
    chain("dns", "type nat hook output priority -101; policy accept;", &rules)
}

/// Sets of connections that were there before, by family.
fn earlier_sets(earlier: &[Ends]) -> String {
    let mut text = String::new();
    for family in Family::BOTH {
        let (name, ..) = family.words();
        let of_family = earlier.iter().filter(|(_, other)| Family::of_address(other) == family);
        let elements: Vec<String> = of_family
            .map(|(own, other)| {
                format!("{} . {} . {} . {}", own.ip(), own.port(), other.ip(), other.port())
            })
            .collect();
        let kind = format!("type {name}_addr . inet_service . {name}_addr . inet_service;");
        let _ = writeln!(text, "  set earlier_{name} {{\n    {kind}");
        if !elements.is_empty() {
            let _ = writeln!(text, "    elements = {{ {} }}", elements.join(", "));
        }
        text += "  }\n";
    }
    text
}

/// What answers somebody who connected to this machine, and connections that were there before: they
/// are none of ours. A segment of any other connection that conntrack has forgotten is not among them.
fn not_begun_here(verdict: &str) -> Vec<String> {
    let mut rules = known(verdict);
    for family in Family::BOTH {
        let (name, header, _) = family.words();
        let ends = format!("{header} saddr . tcp sport . {header} daddr . tcp dport");
        let mark = format!("ct mark set {MARK_OWN:#x} {verdict}");
        // A later connection between the same ends begins, and is none of them from then on.
        rules.insert(0, format!("{BEGINS} {ends} @earlier_{name} ct mark set {MARK_TAKEN:#x}"));
        let not_later = format!("ct mark != {MARK_TAKEN:#x}");
        rules.push(format!("{GOES_ON} {not_later} {ends} @earlier_{name} {mark}"));
    }
    rules
}

/// Connections that others began, and those that were marked because they were there before. A segment
/// that begins a connection is neither, and a datagram proves nothing: whoever sent one first, in
/// another's name, would open a direct way to that other.
pub(crate) fn known(verdict: &str) -> Vec<String> {
    vec![
        format!("{GOES_ON} ct direction reply {verdict}"),
        format!("{GOES_ON} ct mark {MARK_OWN:#x} {verdict}"),
        format!("meta l4proto {{ icmp, ipv6-icmp }} ct direction reply {verdict}"),
    ]
}

/// Connections of other machines that were there before are known by their first segment alone.
fn begun_before(verdict: &str) -> Vec<String> {
    let mut rules = known(verdict);
    rules.push(format!("{GOES_ON} ct state new ct mark set {MARK_OWN:#x} {verdict}"));
    rules
}

/// Marks decide which route is taken, where routes alone cannot.
fn tun_chains(plan: &Plan) -> String {
    let keep = format!("meta mark set {MARK_OWN:#x} return");
    let mut output = vec![format!("meta mark {MARK_OWN:#x} return")];
    output.extend(not_begun_here(&keep));
    let cgroups = Selection { users: Vec::new(), ..plan.selection.clone() };
    if !cgroups.cgroups.is_empty() {
        output.extend(destinations(&plan.selection));
        let taken = selectors(&cgroups).into_iter();
        output.extend(taken.map(|condition| format!("{condition}meta mark set {MARK_TAKEN:#x}")));
    }
    let mut text = chain("output", "type route hook output priority -150; policy accept;", &output);
    if let Method::Tun(device) = &plan.method {
        text += &foreign_chain(device);
    }
    text
}

/// Nobody but the device reaches its addresses: what a network sends to them begins nothing here.
fn foreign_chain(device: &str) -> String {
    let from = format!("iifname != {{ \"lo\", \"{device}\" }}");
    let rules = [
        format!("{from} ip daddr {} drop", TUN_OWN.0),
        format!("{from} ip6 daddr {} drop", TUN_OWN.1),
    ];
    chain("foreign", "type filter hook prerouting priority -300; policy accept;", &rules)
}

/// Who uses the routing table of the device. As long as that is empty the rules change nothing; the one
/// by which the others are found again comes first.
fn tun_rules(plan: &Plan, family: Family, pid: u32, preference: u32) -> Vec<Step> {
    let (table, selection) = (routing_table(pid), &plan.selection);
    let mut who: Vec<String> =
        selection.users.iter().map(|user| format!("uidrange {user}-{user}")).collect();
    if !selection.cgroups.is_empty() {
        who.push(format!("fwmark {MARK_TAKEN:#x}"));
    }
    if who.is_empty() {
        // What this machine's programs begin; what it forwards for others goes its way.
        who.push("iif lo".to_owned());
    }
    let taken = who.iter().map(|who| format!("{} {who} lookup {table}", preference + 1));
    let own = format!("{preference} fwmark {MARK_OWN:#x} lookup main");
    let rules = taken.chain([own]);
    rules.map(|rule| Step::ip(family, &format!("rule add pref {rule}"))).collect()
}

/// The device's address of a family, with its prefix.
pub(crate) fn own_address(family: Family) -> String {
    match family {
        Family::V4 => format!("{}/30", TUN_OWN.0),
        Family::V6 => format!("{}/126", TUN_OWN.1),
    }
}

/// The device's addresses, and a routing table that leads into it.
fn tun_routes(plan: &Plan, device: &str, family: Family, pid: u32) -> Vec<Step> {
    let (table, selection) = (routing_table(pid), &plan.selection);
    let mut steps = Vec::new();
    let mut add = |words: String| steps.push(Step::ip(family, &words));
    match family {
        Family::V4 => {
            add(format!("link set {device} mtu {} up", crate::tun::MTU));
            add(format!("address add {} dev {device}", own_address(family)));
        }
        Family::V6 => add(format!("address add {} dev {device} nodad", own_address(family))),
    }
    let exempt = selection.exempt();
    for net in exempt.iter().filter(|net| Family::of(net) == family) {
        add(format!("route add throw {net} table {table}"));
    }
    let within = IpNet::aggregate(&selection.only_to);
    // The more specific route would win, and an exception is to.
    let is_taken = |net: &&IpNet| !exempt.iter().any(|other| other.contains(*net));
    let named = within.iter().filter(|net| Family::of(net) == family).filter(is_taken);
    let mut taken: Vec<String> = named.map(IpNet::to_string).collect();
    if within.is_empty() {
        taken.push("default".to_owned());
    }
    for net in taken {
        // Of that scope, so that it is nobody's way to a gateway that is on a link.
        add(format!("route add {net} dev {device} scope global table {table}"));
        add(format!("route add unreachable {net} metric {LAST_METRIC} table {table}"));
    }
    steps
}

fn tproxy_chains(plan: &Plan, ports: Ports, gateway: bool) -> String {
    let mut output = [not_begun_here("return"), exemptions(plan)].concat();
    if plan.dns {
        // Those that are taken are redirected.
        output.push("tcp dport 53 return".to_owned());
    }
    output.extend(selected(plan));
    let head = "type route hook output priority -150; policy accept;";
    let mut text = chain("output", head, &output);
    text += &chain("take", "", &[format!("meta mark set {MARK_TAKEN:#x}")]);
    let mut arrive = by_family(ports.tcp, |(family, header, address), port| {
        let to = format!("tproxy {header} to {address}:{port}");
        format!("meta nfproto {family} meta l4proto tcp {to} meta mark set {MARK_TAKEN:#x} accept")
    });
    // Nobody listens any more: nothing goes on to another machine, or to a program of this one.
    arrive.extend(by_family(ports.tcp, |(family, ..), _| format!("meta nfproto {family} drop")));
    let mut prerouting = vec![
        "meta l4proto != tcp return".to_owned(),
        format!("iifname \"lo\" meta mark {MARK_TAKEN:#x} goto arrive"),
    ];
    if gateway {
        prerouting.push("iifname \"lo\" return".to_owned());
        prerouting.extend(begun_before("return"));
        prerouting.extend(destinations(&plan.selection));
        prerouting.push("goto arrive".to_owned());
    }
    let head = "type filter hook prerouting priority -150; policy accept;";
    chain("arrive", "", &arrive) + &text + &chain("prerouting", head, &prerouting)
}

#[cfg(test)]
#[path = "rules_tests.rs"]
mod tests;
