//! nftables and routes of one guardian, as commands: how they are made, removed, and found when their
//! guardian is gone.
//!
//! Everything carries the guardian's process id: the nftables table in its name, the routing table in
//! its number, the rules in their preference.

use std::fmt::Write as _;
use std::net::{Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;

use crate::selection::Selection;

/// Mark of the daemon's own sockets: they are never taken.
pub const MARK_OWN: u32 = 0x5375_6d52;
/// Mark of packets that are led to the daemon by a route.
pub(crate) const MARK_TAKEN: u32 = 0x5375_6d54;

/// The TUN device's addresses; nobody else's, as they are kept free for benchmarks and for local use
/// (RFC 2544, RFC 4193).
pub const TUN_OWN: (Ipv4Addr, Ipv6Addr) =
    (Ipv4Addr::new(198, 19, 253, 1), Ipv6Addr::new(0xfd53, 0x756d, 0x7261, 0, 0, 0, 0, 1));
/// Those of the peer that does not exist, in whose name connections come to the listener.
pub const TUN_PEER: (Ipv4Addr, Ipv6Addr) =
    (Ipv4Addr::new(198, 19, 253, 2), Ipv6Addr::new(0xfd53, 0x756d, 0x7261, 0, 0, 0, 0, 2));

/// Routing tables are numbered from here on, by process id (at most 22 bits).
const TABLE_BASE: u32 = 0x5300_0000;
/// Preference of the first rule; the kernel's own begin at 32766.
const PREFERENCE_BASE: u32 = 16_000;
const PREFERENCES: u32 = 4_000;

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
    /// They are routed into this TUN device, with everything else.
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
}

/// Ports of the daemon on 127.0.0.1 and ::1; 0 where there is none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Ports {
    /// TCP, for IPv4 and IPv6.
    pub tcp: [u16; 2],
    /// UDP for name servers, for IPv4 and IPv6.
    pub dns: [u16; 2],
}

/// A command: its words, and what it reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Step {
    pub(crate) words: Vec<String>,
    pub(crate) input: String,
}

impl Step {
    fn ip(family: Family, words: &str) -> Self {
        let flag = if family == Family::V4 { "-4" } else { "-6" };
        let words = ["ip", flag].into_iter().chain(words.split_whitespace());
        Self { words: words.map(str::to_owned).collect(), input: String::new() }
    }

    fn nft(input: String) -> Self {
        Self { words: ["nft", "-f", "-"].map(str::to_owned).to_vec(), input }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Family {
    V4,
    V6,
}

impl Family {
    const BOTH: [Self; 2] = [Self::V4, Self::V6];

    fn of(net: &IpNet) -> Self {
        if matches!(net, IpNet::V4(_)) { Self::V4 } else { Self::V6 }
    }

    fn index(self) -> usize {
        usize::from(self == Self::V6)
    }

    /// In nftables' language: the family, the header, the daemon's address.
    fn words(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Self::V4 => ("ipv4", "ip", "127.0.0.1"),
            Self::V6 => ("ipv6", "ip6", "[::1]"),
        }
    }
}

fn table_name(pid: u32) -> String {
    format!("sumrate_{pid}")
}

fn routing_table(pid: u32) -> u32 {
    TABLE_BASE | (pid & 0xff_ffff)
}

fn preference(pid: u32) -> u32 {
    PREFERENCE_BASE + pid % PREFERENCES * 4
}

/// The commands that take connections from now on.
pub(crate) fn installation(plan: &Plan, ports: Ports, pid: u32) -> Vec<Step> {
    let mut steps = Vec::new();
    if let Method::Tun(device) = &plan.method {
        steps = tun_routes(plan, device, ports, pid);
    }
    if let Method::Tproxy { .. } = plan.method {
        let (table, preference) = (routing_table(pid), preference(pid));
        for family in Family::BOTH.into_iter().filter(|family| ports.tcp[family.index()] != 0) {
            let route = format!("route add local default dev lo table {table}");
            let rule = format!("rule add pref {preference} fwmark {MARK_TAKEN:#x} lookup {table}");
            steps.extend([Step::ip(family, &route), Step::ip(family, &rule)]);
        }
    }
    // Last, so that nothing is led to where no route goes yet.
    steps.push(Step::nft(ruleset(plan, ports, pid)));
    steps
}

/// The commands that undo all of it, each to be repeated until it fails: several users have rules of one
/// preference.
pub(crate) fn removal(pid: u32) -> Vec<Step> {
    let mut steps = vec![Step::nft(format!("delete table inet {}\n", table_name(pid)))];
    for family in Family::BOTH {
        for offset in 0..4 {
            let rule = format!("rule del pref {}", preference(pid) + offset);
            steps.push(Step::ip(family, &rule));
        }
        steps.push(Step::ip(family, &format!("route flush table {}", routing_table(pid))));
    }
    steps
}

/// Guardians that made the tables that `nft list tables` names.
pub(crate) fn owners_of_tables(listed: &str) -> Vec<u32> {
    let names = listed.lines().filter_map(|line| line.trim().strip_prefix("table inet sumrate_"));
    names.filter_map(|pid| pid.parse().ok()).collect()
}

/// Guardians that made the rules that `ip rule` names.
pub(crate) fn owners_of_rules(listed: &str) -> Vec<u32> {
    let table =
        |line: &str| line.split_whitespace().skip_while(|w| *w != "lookup").nth(1)?.parse().ok();
    let tables = listed.lines().filter_map(table);
    tables
        .filter(|table: &u32| table & 0xff00_0000 == TABLE_BASE)
        .map(|table| table & 0xff_ffff)
        .collect()
}

fn ruleset(plan: &Plan, ports: Ports, pid: u32) -> String {
    let mut text = format!("table inet {} {{\n", table_name(pid));
    if plan.dns {
        text += &dns_chain(plan, ports);
    }
    match plan.method {
        Method::Redirect => {
            let take = by_family(ports.tcp, |(family, _, _), port| {
                format!("meta nfproto {family} meta l4proto tcp redirect to :{port}")
            });
            let head = "type nat hook output priority -100; policy accept;";
            text += &chain("output", head, &[exemptions(plan), selected(plan)].concat());
            text += &chain("take", "", &take);
        }
        Method::Tproxy { gateway } => text += &tproxy_chains(plan, ports, gateway),
        Method::Tun(_) => text += &tun_chains(plan),
    }
    text + "}\n"
}

fn chain(name: &str, head: &str, rules: &[String]) -> String {
    let mut text = format!("  chain {name} {{\n");
    for line in std::iter::once(head)
        .filter(|head| !head.is_empty())
        .chain(rules.iter().map(String::as_str))
    {
        let _ = writeln!(text, "    {line}");
    }
    text + "  }\n"
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

fn destinations(selection: &Selection) -> Vec<String> {
    let mut rules =
        vec!["fib daddr type { local, broadcast, multicast, anycast } return".to_owned()];
    for family in Family::BOTH {
        let (name, header, _) = family.words();
        let of_family = |nets: &[IpNet]| -> Vec<String> {
            nets.iter().filter(|net| Family::of(net) == family).map(IpNet::to_string).collect()
        };
        let exempt = of_family(&selection.exempt());
        if !exempt.is_empty() {
            rules.push(format!("{header} daddr {{ {} }} return", exempt.join(", ")));
        }
        let only_to = of_family(&IpNet::aggregate(&selection.only_to));
        match (selection.only_to.is_empty(), only_to.is_empty()) {
            (true, _) => {}
            (false, true) => rules.push(format!("meta nfproto {name} return")),
            (false, false) => {
                rules.push(format!("{header} daddr != {{ {} }} return", only_to.join(", ")));
            }
        }
    }
    rules
}

/// Conditions of which any selects a program; one that is always true if all are selected.
fn selectors(selection: &Selection) -> Vec<String> {
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

/// Questions to name servers, to whichever: one on this machine would ask on without us.
fn dns_chain(plan: &Plan, ports: Ports) -> String {
    let mut rules = vec![format!("meta mark {MARK_OWN:#x} return")];
    for condition in selectors(&plan.selection) {
        let udp = by_family(ports.dns, |(family, _, _), port| {
            format!("{condition}meta nfproto {family} udp dport 53 redirect to :{port}")
        });
        let tcp = by_family(ports.tcp, |(family, _, _), port| {
            format!("{condition}meta nfproto {family} tcp dport 53 redirect to :{port}")
        });
        // A TPROXY listener does not see what was redirected, so its TCP goes on as any other.
        rules.extend(udp);
        if plan.method == Method::Redirect {
            rules.extend(tcp);
        }
    }
    chain("dns", "type nat hook output priority -101; policy accept;", &rules)
}

/// What answers somebody who connected to this machine, and connections that were there before: they
/// are none of ours.
fn not_begun_here(verdict: &str) -> Vec<String> {
    let first = "ct state new tcp flags & (fin | syn | rst | ack) != syn";
    vec![
        format!("ct direction reply {verdict}"),
        format!("ct mark {MARK_OWN:#x} {verdict}"),
        format!("meta l4proto tcp {first} ct mark set {MARK_OWN:#x} {verdict}"),
    ]
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
    chain("output", "type route hook output priority -150; policy accept;", &output)
}

/// The device's addresses; a routing table that leads into it; and who is to use that.
fn tun_routes(plan: &Plan, device: &str, ports: Ports, pid: u32) -> Vec<Step> {
    let (table, preference) = (routing_table(pid), preference(pid));
    let selection = &plan.selection;
    let mut steps = Vec::new();
    for family in Family::BOTH.into_iter().filter(|family| ports.tcp[family.index()] != 0) {
        let mut add = |words: String| steps.push(Step::ip(family, &words));
        match family {
            Family::V4 => {
                add(format!("address add {}/30 dev {device}", TUN_OWN.0));
                add(format!("link set {device} mtu {} up", crate::tun::MTU));
            }
            Family::V6 => add(format!("address add {}/126 dev {device} nodad", TUN_OWN.1)),
        }
        let exempt = selection.exempt();
        for net in exempt.iter().filter(|net| Family::of(net) == family) {
            add(format!("route add throw {net} table {table}"));
        }
        let within = IpNet::aggregate(&selection.only_to);
        // The more specific route would win, and an exception is to.
        let is_taken = |net: &&IpNet| !exempt.iter().any(|other| other.contains(*net));
        for net in within.iter().filter(|net| Family::of(net) == family).filter(is_taken) {
            add(format!("route add {net} dev {device} table {table}"));
        }
        add(format!("rule add pref {preference} fwmark {MARK_OWN:#x} lookup main"));
        if within.is_empty() {
            add(format!("route add default dev {device} table {table}"));
            // What is nearer than the default route stays as it is.
            add(format!("rule add pref {} lookup main suppress_prefixlength 0", preference + 1));
        }
        let mut who: Vec<String> =
            selection.users.iter().map(|user| format!("uidrange {user}-{user}")).collect();
        if !selection.cgroups.is_empty() {
            who.push(format!("fwmark {MARK_TAKEN:#x}"));
        }
        if who.is_empty() {
            who.push(String::new());
        }
        for who in who {
            add(format!("rule add pref {} {who} lookup {table}", preference + 2));
        }
    }
    steps
}

fn tproxy_chains(plan: &Plan, ports: Ports, gateway: bool) -> String {
    let output = [not_begun_here("return"), exemptions(plan), selected(plan)].concat();
    let head = "type route hook output priority -150; policy accept;";
    let mut text = chain("output", head, &output);
    text += &chain("take", "", &[format!("meta mark set {MARK_TAKEN:#x}")]);
    let arrive = by_family(ports.tcp, |(family, header, address), port| {
        let to = format!("tproxy {header} to {address}:{port}");
        format!("meta nfproto {family} meta l4proto tcp {to} meta mark set {MARK_TAKEN:#x} accept")
    });
    let mut prerouting = vec![
        "meta l4proto != tcp return".to_owned(),
        format!("iifname \"lo\" meta mark {MARK_TAKEN:#x} goto arrive"),
    ];
    if gateway {
        prerouting.push("iifname \"lo\" return".to_owned());
        prerouting.extend(not_begun_here("return"));
        prerouting.extend(destinations(&plan.selection));
        prerouting.push("goto arrive".to_owned());
    }
    let head = "type filter hook prerouting priority -150; policy accept;";
    chain("arrive", "", &arrive) + &text + &chain("prerouting", head, &prerouting)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(method: Method) -> Plan {
        let selection = Selection {
            users: vec![1000, 1001],
            cgroups: vec!["/user.slice/web".to_owned()],
            only_to: vec!["203.0.113.0/24".parse().unwrap()],
            direct: vec!["203.0.113.9/32".parse().unwrap()],
        };
        Plan { method, selection, dns: true }
    }

    const PORTS: Ports = Ports { tcp: [4000, 6000], dns: [4053, 6053] };

    /// The rules of a chain, in order.
    fn rules_of<'a>(text: &'a str, name: &str) -> Vec<&'a str> {
        let body = text.split(&format!("chain {name} {{")).nth(1).unwrap();
        body.split('}').next().unwrap().lines().map(str::trim).filter(|l| !l.is_empty()).collect()
    }

    #[test]
    fn own_sockets_and_exceptions_come_before_what_is_taken() {
        for method in [Method::Redirect, Method::Tproxy { gateway: false }] {
            let text = ruleset(&plan(method), PORTS, 77);
            assert!(text.starts_with("table inet sumrate_77 {"), "{text}");
            let body = text.split("chain output {").nth(1).unwrap();
            let own = body.find("meta mark 0x53756d52 return").unwrap();
            let direct = body.find("203.0.113.9/32").unwrap();
            let users = body.find("meta skuid { 1000, 1001 } goto take").unwrap();
            let cgroup = body.find("socket cgroupv2 level 2 \"user.slice/web\" goto take").unwrap();
            assert!(own < direct && direct < users && users < cgroup, "{text}");
            assert!(text.contains("meta nfproto ipv6 return"), "only IPv4 is named: {text}");
        }
    }

    #[test]
    fn without_a_selection_everything_is_taken() {
        let plan = Plan { method: Method::Redirect, selection: Selection::default(), dns: false };
        let text = ruleset(&plan, Ports { tcp: [4000, 0], dns: [0; 2] }, 7);
        assert_eq!(
            rules_of(&text, "take"),
            ["meta nfproto ipv4 meta l4proto tcp redirect to :4000"]
        );
        assert!(text.contains("    goto take\n") && !text.contains("dport 53"), "{text}");
        assert!(text.contains("192.168.0.0/16"), "{text}");
    }

    #[test]
    fn a_gateway_takes_what_comes_from_others() {
        let own = ruleset(&plan(Method::Tproxy { gateway: false }), PORTS, 7);
        let all = ruleset(&plan(Method::Tproxy { gateway: true }), PORTS, 7);
        assert!(!own.contains("    goto arrive\n") && all.contains("    goto arrive\n"), "{all}");
    }

    #[test]
    fn a_device_has_routes_for_what_is_taken_and_none_for_the_rest() {
        let words = |selection: Selection| -> Vec<String> {
            let plan = Plan { method: Method::Tun("sumrate0".to_owned()), selection, dns: false };
            installation(&plan, PORTS, 7).iter().map(|step| step.words.join(" ")).collect()
        };
        let all = words(Selection::default());
        let has = |steps: &[String], end: &str| steps.iter().any(|step| step.ends_with(end));
        assert!(has(&all, "route add default dev sumrate0 table 1392508935"), "{all:?}");
        assert!(has(&all, "route add throw 192.168.0.0/16 table 1392508935"));
        assert!(has(&all, "rule add pref 16029 lookup main suppress_prefixlength 0"));
        assert!(has(&all, "rule add pref 16030 lookup 1392508935"));
        let some = words(plan(Method::Redirect).selection);
        assert!(has(&some, "route add 203.0.113.0/24 dev sumrate0 table 1392508935"), "{some:?}");
        assert!(has(&some, "route add throw 203.0.113.9/32 table 1392508935"));
        assert!(!some.iter().any(|step| step.contains(" default ")));
        let none = Selection {
            direct: vec!["203.0.0.0/8".parse().unwrap()],
            ..plan(Method::Redirect).selection
        };
        assert!(!words(none).iter().any(|step| step.contains("add 203.0.113.0/24")));
        assert!(has(&some, "rule add pref 16030 uidrange 1001-1001 lookup 1392508935"));
        assert!(has(&some, "rule add pref 16030 fwmark 0x53756d54 lookup 1392508935"));
    }

    #[test]
    fn connections_that_were_there_before_are_left_alone() {
        for method in [Method::Tproxy { gateway: true }, Method::Tun("sumrate0".to_owned())] {
            let text = ruleset(&plan(method), PORTS, 7);
            let body = text.split("chain output {").nth(1).unwrap();
            let reply = body.find("ct direction reply").unwrap();
            let before = body.find("ct state new tcp flags").unwrap();
            let taken = body.find("cgroupv2").unwrap();
            assert!(reply < before && before < taken, "{text}");
        }
    }

    #[test]
    fn what_was_made_is_found_again() {
        let listed = "table ip nat\ntable inet sumrate_4194303\ntable inet sumrate_x\n";
        assert_eq!(owners_of_tables(listed), [4_194_303]);
        let steps = installation(&plan(Method::Tproxy { gateway: false }), PORTS, 4_194_303);
        let added: Vec<_> =
            steps.iter().map(|step| step.words.join(" ")).filter(|s| s.contains("rule")).collect();
        assert_eq!(added.len(), 2);
        let listed =
            format!("0:\tfrom all lookup local\n{}\n32766:\tfrom all lookup main", added[0]);
        assert_eq!(owners_of_rules(&listed), [4_194_303]);
        let removed: Vec<_> = removal(4_194_303).iter().map(|step| step.words.join(" ")).collect();
        let preference = preference(4_194_303);
        assert!(preference < 32_000);
        for rule in [
            format!("ip -4 rule del pref {preference}"),
            format!("ip -6 rule del pref {preference}"),
        ] {
            assert!(removed.contains(&rule), "{removed:?}");
        }
    }
}
