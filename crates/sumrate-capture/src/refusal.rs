//! Chains that refuse: what is to be taken and cannot be, because there is no listener for its family, it
//! would leave by another interface than the TUN device, or the daemon is gone.

use crate::rules::{
    BEGINS, Family, MARK_OWN, MARK_TAKEN, Method, Plan, chain, destinations, known, networks,
    selectors,
};

/// Neighbour discovery (RFC 4861) concerns the link alone.
const NEIGHBOURS: &str = "icmpv6 type { nd-router-solicit, nd-router-advert, nd-neighbor-solicit, \
                          nd-neighbor-advert, nd-redirect } return";
const REFUSED: &str = "refused";
const REFUSED_NAMES: &str = "refuse_names";

/// What is refused.
struct Refused<'a> {
    /// Packets of these families.
    families: Vec<Family>,
    /// Questions to name servers over these families, to private ones too.
    names: Vec<Family>,
    /// Packets that leave by this device are not, unless there is no listener for their family.
    device: Option<&'a str>,
}

/// Chains beside those that take: `tcp` are the ports of the listeners, 0 where there is none.
pub(crate) fn beside(plan: &Plan, tcp: [u16; 2]) -> String {
    let without = Family::BOTH.into_iter().filter(|family| tcp[family.index()] == 0);
    let without: Vec<Family> = without.collect();
    let refused = match &plan.method {
        Method::Tun(device) => {
            Refused { families: Family::BOTH.to_vec(), names: without, device: Some(device) }
        }
        _ => Refused { families: without.clone(), names: without, device: None },
    };
    let refusing = if refused.families.is_empty() { String::new() } else { chains(plan, &refused) };
    reversed(plan) + &refusing + &leaving(plan) + &quic(plan)
}

/// Connections to which somebody has sent a first packet from the other end, as a network can in
/// anybody's name: address translation and marks pass them by, so they would leave directly.
fn reversed(plan: &Plan) -> String {
    let begins = format!("{BEGINS} reject with tcp reset");
    let mut rules =
        vec![format!("meta mark {MARK_OWN:#x} return"), "ct direction original return".to_owned()];
    if plan.dns {
        rules.extend(networks(&plan.selection.direct, &plan.selection.only_to));
        for condition in selectors(&plan.selection) {
            rules.push(format!("{condition}udp dport 53 reject"));
            rules.push(format!("{condition}tcp dport 53 {begins}"));
        }
    }
    rules.extend(destinations(&plan.selection));
    let selected = selectors(&plan.selection).into_iter();
    rules.extend(selected.map(|condition| format!("{condition}{begins}")));
    let head = "type filter hook output priority -1; policy accept;";
    let mut text = chain("refuse_reversed", head, &rules);
    if let Method::Tproxy { gateway: true } = plan.method {
        let mut rules = vec!["ct direction original return".to_owned()];
        rules.extend(destinations(&plan.selection));
        rules.push(begins);
        let head = "type filter hook forward priority -1; policy accept;";
        text += &chain("refuse_reversed_forward", head, &rules);
    }
    text
}

fn by_device(device: &str) -> String {
    format!("oifname \"{device}\" return")
}

/// Marked packets stay on this machine or leave by the device: a program that binds itself to another
/// interface is no exception. The output hook still has the interface of before the mark.
fn leaving(plan: &Plan) -> String {
    let way = match &plan.method {
        Method::Tproxy { .. } => None,
        Method::Tun(device) if !plan.selection.cgroups.is_empty() => Some(by_device(device)),
        Method::Redirect | Method::Tun(_) => return String::new(),
    };
    let mut rules =
        vec![format!("meta mark != {MARK_TAKEN:#x} return"), "oifname \"lo\" return".to_owned()];
    rules.extend(way);
    rules.push("drop".to_owned());
    let head = "type filter hook postrouting priority 0; policy accept;";
    chain("refuse_leaving", head, &rules)
}

/// Chains instead of those that take, when the daemon is gone.
pub(crate) fn instead(plan: &Plan) -> String {
    let both = || Family::BOTH.to_vec();
    let refused = Refused { families: both(), names: both(), device: None };
    reversed(plan) + &chains(plan, &refused) + &quic(plan)
}

/// HTTP/3, which would leave directly: programs are told at once, and use TCP.
fn quic(plan: &Plan) -> String {
    if !plan.refuse_quic {
        return String::new();
    }
    let refuse = "udp dport 443 reject";
    let mut rules = vec![format!("meta mark {MARK_OWN:#x} return")];
    rules.extend(destinations(&plan.selection));
    let selected = selectors(&plan.selection).into_iter();
    rules.extend(selected.map(|condition| format!("{condition}{refuse}")));
    let head = "type filter hook output priority 0; policy accept;";
    let mut text = chain("refuse_quic", head, &rules);
    if let Method::Tproxy { gateway: true } = plan.method {
        let mut rules = destinations(&plan.selection);
        rules.push(refuse.to_owned());
        let head = "type filter hook forward priority 0; policy accept;";
        text += &chain("refuse_quic_forward", head, &rules);
    }
    text
}

fn chains(plan: &Plan, refused: &Refused<'_>) -> String {
    let reject = ["meta l4proto tcp reject with tcp reset", "reject"].map(str::to_owned);
    let mut text = chain(REFUSED, "", &reject);
    text += &chain(REFUSED_NAMES, "", &names(plan, refused));
    let head = "type filter hook output priority 0; policy accept;";
    text += &chain("refuse", head, &rules(plan, refused));
    if let Method::Tproxy { gateway: true } = plan.method {
        let head = "type filter hook forward priority 0; policy accept;";
        text += &chain("refuse_forward", head, &forwarded(plan, refused));
    }
    text
}

/// The rules for what this machine's programs send.
fn rules(plan: &Plan, refused: &Refused<'_>) -> Vec<String> {
    let mut rules =
        vec![format!("meta mark {MARK_OWN:#x} return"), format!("jump {REFUSED_NAMES}")];
    rules.extend(other_families(&refused.families));
    match &plan.method {
        // What was redirected goes on to this machine, and the rest of it was there before.
        Method::Redirect => rules.extend(
            ["meta l4proto != tcp return", "ct state established,related return"]
                .map(str::to_owned),
        ),
        Method::Tproxy { .. } => {
            rules.extend(known("return"));
            rules.push("meta l4proto != tcp return".to_owned());
        }
        Method::Tun(_) => {
            rules.extend(known("return"));
            rules.push(NEIGHBOURS.to_owned());
        }
    }
    if let Some(device) = refused.device {
        let mut ways = vec![format!("oifname \"{device}\"")];
        if !plan.selection.cgroups.is_empty() {
            ways.push(format!("meta mark {MARK_TAKEN:#x}"));
        }
        // What was redirected has the device of before. Nothing that was not goes on into it but
        // datagrams, of families that have a listener.
        rules.push("fib daddr type local return".to_owned());
        for way in ways {
            for family in &refused.names {
                rules.push(format!("{way} meta nfproto {} goto {REFUSED}", family.words().0));
            }
            rules.push(format!("{way} meta l4proto tcp goto {REFUSED}"));
            rules.push(format!("{way} return"));
        }
    }
    rules.extend(destinations(&plan.selection));
    let selected = selectors(&plan.selection).into_iter();
    rules.extend(selected.map(|condition| format!("{condition}goto {REFUSED}")));
    rules
}

/// The rules for what machines behind this one send.
fn forwarded(plan: &Plan, refused: &Refused<'_>) -> Vec<String> {
    let mut rules: Vec<String> = other_families(&refused.families).into_iter().collect();
    rules.extend(known("return"));
    rules.push("meta l4proto != tcp return".to_owned());
    rules.extend(destinations(&plan.selection));
    rules.push(format!("goto {REFUSED}"));
    rules
}

/// The rules for questions to name servers.
fn names(plan: &Plan, refused: &Refused<'_>) -> Vec<String> {
    if !plan.dns || refused.names.is_empty() {
        return Vec::new();
    }
    let mut rules: Vec<String> = other_families(&refused.names).into_iter().collect();
    rules.extend(networks(&plan.selection.direct, &plan.selection.only_to));
    for condition in selectors(&plan.selection) {
        rules.push(format!("{condition}meta l4proto {{ tcp, udp }} th dport 53 goto {REFUSED}"));
    }
    rules
}

/// Leaves the families alone that are not named.
fn other_families(families: &[Family]) -> Option<String> {
    match families {
        [family] => Some(format!("meta nfproto != {} return", family.words().0)),
        _ => None,
    }
}
