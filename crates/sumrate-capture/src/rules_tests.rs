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
    body.split("\n  }").next().unwrap().lines().map(str::trim).filter(|l| !l.is_empty()).collect()
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
    assert_eq!(rules_of(&text, "take"), ["meta nfproto ipv4 meta l4proto tcp redirect to :4000"]);
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
        installation(&plan, PORTS, 7, 16_028).iter().map(|step| step.words.join(" ")).collect()
    };
    let all = words(Selection::default());
    let has = |steps: &[String], end: &str| steps.iter().any(|step| step.ends_with(end));
    assert!(has(&all, "route add default dev sumrate0 table 1392508935"), "{all:?}");
    assert!(has(&all, "route add throw 192.168.0.0/16 table 1392508935"));
    assert!(has(&all, "rule add pref 16029 lookup main suppress_prefixlength 0"));
    assert!(has(&all, "rule add pref 16030 iif lo lookup 1392508935"));
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
fn questions_to_excepted_name_servers_are_left_alone() {
    for method in [Method::Redirect, Method::Tproxy { gateway: false }] {
        let text = ruleset(&plan(method), PORTS, 7);
        let rules = rules_of(&text, "dns");
        let of = |part: &str| rules.iter().position(|rule| rule.contains(part)).unwrap();
        let taken = of("udp dport 53 redirect to :4053");
        assert!(of("ip daddr { 203.0.113.9/32 } return") < taken, "{rules:?}");
        assert!(of("ip daddr != { 203.0.113.0/24 } return") < taken, "{rules:?}");
        assert!(of("meta nfproto ipv6 return") < taken, "only IPv4 is named: {rules:?}");
    }
    let selection = Selection { direct: vec!["fd00::53/128".parse().unwrap()], ..none() };
    let text = ruleset(&Plan { method: Method::Redirect, selection, dns: true }, PORTS, 7);
    let rules = rules_of(&text, "dns");
    assert!(rules.contains(&"ip6 daddr { fd00::53/128 } return"), "{rules:?}");
    let near = |rule: &&str| rule.contains("192.168.0.0/16") || rule.contains("local");
    assert!(!rules.iter().any(near), "those on this machine's own network are taken: {rules:?}");
}

fn none() -> Selection {
    Selection::default()
}

/// What `ip rule` lists of the rules that are added.
fn listed(steps: &[Step]) -> Listed {
    let words = |step: &Step| step.words.join(" ");
    let line = |words: &str| {
        let (preference, rest) = words.split_once("rule add pref ")?.1.split_once(' ')?;
        Some(format!("{preference}:\tfrom all {rest}\n"))
    };
    ["ip -4", "ip -6"].map(|start| {
        let own = steps.iter().map(words).filter(|words| words.starts_with(start));
        let lines: String = own.filter_map(|words| line(&words)).collect();
        format!("0:\tfrom all lookup local\n{lines}32766:\tfrom all lookup main\n")
    })
}

fn both(one: &Listed, other: &Listed) -> Listed {
    std::array::from_fn(|index| format!("{}{}", one[index], other[index]))
}

#[test]
fn what_was_made_is_found_again() {
    let tables = "table ip nat\ntable inet sumrate_4194303\ntable inet sumrate_x\n";
    assert_eq!(owners_of_tables(tables), [4_194_303]);
    let methods = [Method::Tproxy { gateway: false }, Method::Tun("sumrate0".to_owned())];
    for (method, each) in methods.into_iter().zip([1, 4]) {
        let pid = 4_194_303;
        let preference = free_preference(pid, &Listed::default());
        assert!(preference + OF_EACH < 32_000);
        let steps = installation(&plan(method), PORTS, pid, preference);
        let listed = listed(&steps);
        assert!(owners_of_rules(&listed[0]).iter().all(|owner| *owner == pid));
        assert!(!owners_of_rules(&listed[0]).is_empty());
        let removed = removal(pid, &listed);
        let rules = removed.iter().filter(|step| step.words.contains(&"del".to_owned()));
        assert_eq!(rules.count(), 2 * each, "{removed:?}");
    }
}

#[test]
fn the_rules_of_another_guardian_stay() {
    let device = Plan { method: Method::Tun("sumrate0".to_owned()), selection: none(), dns: false };
    let (first, second) = (7, 7 + PREFERENCES);
    let begin = |pid: u32, there: &Listed| {
        let preference = free_preference(pid, there);
        (preference, listed(&installation(&device, PORTS, pid, preference)))
    };
    let (one, of_first) = begin(first, &Listed::default());
    let (other, of_second) = begin(second, &of_first);
    assert!(one.abs_diff(other) >= OF_EACH, "{one} and {other}");
    let removed = removal(first, &both(&of_first, &of_second));
    let words: Vec<String> = removed.iter().map(|step| step.words.join(" ")).collect();
    let deleted: Vec<&String> = words.iter().filter(|words| words.contains("del pref")).collect();
    assert_eq!(deleted.len(), 6, "{deleted:?}");
    for words in deleted {
        let preference = words.split(' ').nth(5).unwrap().parse::<u32>().unwrap();
        assert!((one..one + OF_EACH).contains(&preference), "{words}");
    }
    // Even where both have the same preferences, as they began at the same moment, what leads to the
    // other's table stays, and what leads to the main table until the other ends, too.
    let of_second = listed(&installation(&device, PORTS, second, one));
    let [mine, others] = [first, second].map(|pid| routing_table(pid).to_string());
    let deleted = |steps: &[Step]| {
        [mine.as_str(), others.as_str(), "main"].map(|table| {
            let words = steps.iter().map(|step| step.words.join(" "));
            words.filter(|words| words.contains(" rule del ") && words.ends_with(table)).count()
        })
    };
    assert_eq!(deleted(&removal(first, &both(&of_first, &of_second))), [2, 0, 0]);
    assert_eq!(deleted(&removal(second, &of_second)), [0, 2, 4]);
}
