use super::*;

fn plan(method: Method) -> Plan {
    let selection = Selection {
        users: vec![1000, 1001],
        cgroups: vec!["/user.slice/web".to_owned()],
        only_to: vec!["203.0.113.0/24".parse().unwrap()],
        direct: vec!["203.0.113.9/32".parse().unwrap()],
    };
    Plan { method, selection, dns: true, refuse_quic: false, when_down: WhenDown::Refuse }
}

/// Takes everything of everybody.
fn whole(method: Method) -> Plan {
    Plan { method, selection: none(), dns: false, refuse_quic: false, when_down: WhenDown::Refuse }
}

fn device() -> Method {
    Method::Tun("sumrate0".to_owned())
}

/// A machine with this free preference and no connection.
fn at(preference: u32) -> Found {
    Found { preference, earlier: Vec::new() }
}

fn owner(pid: u32) -> Owner {
    Owner { pid, started: 99 }
}

const PORTS: Ports = Ports { tcp: [4000, 6000], dns: [4053, 6053], dns_tcp: [4153, 6153] };

fn ruleset(plan: &Plan, ports: Ports, owner: Owner, earlier: &[Ends]) -> String {
    taking(plan, ports, owner, &Found { preference: 0, earlier: earlier.to_vec() })
        .input
        .splitn(3, '\n')
        .last()
        .unwrap()
        .to_owned()
}

/// The rules of a chain, in order.
fn rules_of<'a>(text: &'a str, name: &str) -> Vec<&'a str> {
    let body = text.split(&format!("chain {name} {{")).nth(1).unwrap();
    body.split("\n  }").next().unwrap().lines().map(str::trim).filter(|l| !l.is_empty()).collect()
}

#[test]
fn own_sockets_and_exceptions_come_before_what_is_taken() {
    let methods = [(Method::Redirect, "redirected"), (Method::Tproxy { gateway: false }, "output")];
    for (method, name) in methods {
        let text = ruleset(&plan(method), PORTS, owner(77), &[]);
        assert!(text.contains("table inet sumrate_77_99 {"), "{text}");
        let body = text.split(&format!("chain {name} {{")).nth(1).unwrap();
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
    let ports = Ports { tcp: [4000, 0], ..Ports::default() };
    let text = ruleset(&whole(Method::Redirect), ports, owner(7), &[]);
    assert_eq!(rules_of(&text, "take"), ["meta nfproto ipv4 meta l4proto tcp redirect to :4000"]);
    assert!(text.contains("    goto take\n") && !text.contains("dport 53"), "{text}");
    assert!(text.contains("192.168.0.0/16"), "{text}");
}

#[test]
fn a_gateway_takes_what_comes_from_others() {
    let own = ruleset(&plan(Method::Tproxy { gateway: false }), PORTS, owner(7), &[]);
    let all = ruleset(&plan(Method::Tproxy { gateway: true }), PORTS, owner(7), &[]);
    assert!(!own.contains("    goto arrive\n") && all.contains("    goto arrive\n"), "{all}");
}

#[test]
fn a_device_has_routes_for_what_is_taken_and_none_for_the_rest() {
    let words = |selection: Selection| -> Vec<String> {
        let plan = Plan { selection, ..whole(device()) };
        let steps = installation(&plan, PORTS, owner(7), &at(16_028));
        steps.iter().map(|step| step.words.join(" ")).collect()
    };
    let all = words(Selection::default());
    let has = |steps: &[String], end: &str| steps.iter().any(|step| step.ends_with(end));
    assert!(has(&all, "route add default dev sumrate0 scope global table 1392508935"), "{all:?}");
    assert!(has(&all, "route add throw 192.168.0.0/16 table 1392508935"));
    assert!(has(&all, "route add unreachable default metric 4294967294 table 1392508935"));
    assert!(has(&all, "rule add pref 16029 iif lo lookup 1392508935"));
    let some = words(plan(Method::Redirect).selection);
    assert!(
        has(&some, "route add 203.0.113.0/24 dev sumrate0 scope global table 1392508935"),
        "{some:?}"
    );
    assert!(has(&some, "route add unreachable 203.0.113.0/24 metric 4294967294 table 1392508935"));
    assert!(has(&some, "route add throw 203.0.113.9/32 table 1392508935"));
    assert!(!some.iter().any(|step| step.contains(" default ")));
    let none = Selection {
        direct: vec!["203.0.0.0/8".parse().unwrap()],
        ..plan(Method::Redirect).selection
    };
    assert!(!words(none).iter().any(|step| step.contains("add 203.0.113.0/24")));
    assert!(has(&some, "rule add pref 16029 uidrange 1001-1001 lookup 1392508935"));
    assert!(has(&some, "rule add pref 16029 fwmark 0x53756d54 lookup 1392508935"));
}

#[test]
fn connections_that_were_there_before_are_left_alone() {
    for method in [Method::Tproxy { gateway: true }, device()] {
        let text = ruleset(&plan(method), PORTS, owner(7), &[]);
        let body = text.split("chain output {").nth(1).unwrap();
        let reply = body.find("ct direction reply").unwrap();
        let before = body.find("ct mark != 0x53756d54 ip saddr . tcp sport").unwrap();
        let taken = body.find("cgroupv2").unwrap();
        assert!(reply < before && before < taken, "{text}");
    }
}

#[test]
fn only_listed_connections_count_as_earlier() {
    let earlier = [
        ("10.1.1.1:4000".parse().unwrap(), "203.0.113.77:443".parse().unwrap()),
        ("[2001:db8::1]:4000".parse().unwrap(), "[2001:db8::2]:443".parse().unwrap()),
    ];
    for method in [Method::Tproxy { gateway: false }, device()] {
        let text = ruleset(&whole(method.clone()), PORTS, owner(7), &earlier);
        for listed in [
            "{ 10.1.1.1 . 4000 . 203.0.113.77 . 443 }",
            "{ 2001:db8::1 . 4000 . 2001:db8::2 . 443 }",
        ] {
            assert!(text.contains(&format!("elements = {listed}")), "{text}");
        }
        let output = rules_of(&text, "output").join("\n");
        assert!(!output.contains("ct state new"), "a later segment proves nothing: {output}");
        assert!(output.contains("@earlier_ipv4") && output.contains("@earlier_ipv6"), "{output}");
    }
    let redirect = ruleset(&whole(Method::Redirect), PORTS, owner(7), &earlier);
    assert!(!redirect.contains("earlier"), "conntrack knows them: {redirect}");
}

#[test]
fn what_begins_a_connection_is_never_exempt() {
    for method in [Method::Redirect, Method::Tproxy { gateway: true }, device()] {
        let plan = whole(method.clone());
        for text in [ruleset(&plan, PORTS, owner(7), &[]), refusal(&plan, owner(7)).input] {
            let exempt = |rule: &&str| {
                rule.starts_with("ct direction reply") || rule.contains("ct mark set 0x53756d52")
            };
            let unsafe_rules: Vec<&str> = text
                .lines()
                .map(str::trim)
                .filter(|rule| exempt(rule) && !rule.starts_with("tcp flags & (syn | ack) != syn"))
                .collect();
            assert!(unsafe_rules.is_empty(), "{unsafe_rules:?}");
            let reversed = rules_of(&text, "refuse_reversed");
            assert_eq!(
                reversed.last(),
                Some(&"tcp flags & (syn | ack) == syn reject with tcp reset"),
                "{text}"
            );
            let gateway = text.contains("chain refuse_reversed_forward");
            assert_eq!(gateway, method == Method::Tproxy { gateway: true });
        }
    }
    let named = Plan { dns: true, ..whole(device()) };
    let reversed = ruleset(&named, PORTS, owner(7), &[]);
    assert!(rules_of(&reversed, "refuse_reversed").contains(&"udp dport 53 reject"), "{reversed}");
}

#[test]
fn questions_to_excepted_name_servers_are_left_alone() {
    for method in [Method::Redirect, Method::Tproxy { gateway: false }] {
        let text = ruleset(&plan(method), PORTS, owner(7), &[]);
        let rules = rules_of(&text, "dns");
        let of = |part: &str| rules.iter().position(|rule| rule.contains(part)).unwrap();
        let taken = of("udp dport 53 redirect to :4053");
        assert!(of("ip daddr { 203.0.113.9/32 } return") < taken, "{rules:?}");
        assert!(of("ip daddr != { 203.0.113.0/24 } return") < taken, "{rules:?}");
        assert!(of("meta nfproto ipv6 return") < taken, "only IPv4 is named: {rules:?}");
    }
    let selection = Selection { direct: vec!["fd00::53/128".parse().unwrap()], ..none() };
    let plan = Plan { selection, dns: true, ..whole(Method::Redirect) };
    let text = ruleset(&plan, PORTS, owner(7), &[]);
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
    let methods = [Method::Tproxy { gateway: false }, device()];
    for (method, each) in methods.into_iter().zip([1, 4]) {
        let pid = 4_194_303;
        let preference = free_preference(pid, &Listed::default());
        assert!(preference + OF_EACH < 32_000);
        let steps = installation(&plan(method), PORTS, owner(pid), &at(preference));
        let listed = listed(&steps);
        assert!(owners_of_rules(&listed[0]).iter().all(|owner| *owner == pid));
        assert!(!owners_of_rules(&listed[0]).is_empty());
        let removed = removal_of_routes(pid, &listed);
        let rules = removed.iter().filter(|step| step.words.contains(&"del".to_owned()));
        assert_eq!(rules.count(), 2 * each, "{removed:?}");
    }
}

#[test]
fn the_rules_of_another_guardian_stay() {
    let (first, second) = (7, 7 + PREFERENCES);
    let begin = |pid: u32, there: &Listed| {
        let preference = free_preference(pid, there);
        (preference, listed(&installation(&whole(device()), PORTS, owner(pid), &at(preference))))
    };
    let (one, of_first) = begin(first, &Listed::default());
    let (other, of_second) = begin(second, &of_first);
    assert!(one.abs_diff(other) >= OF_EACH, "{one} and {other}");
    let removed = removal_of_routes(first, &both(&of_first, &of_second));
    let words: Vec<String> = removed.iter().map(|step| step.words.join(" ")).collect();
    let deleted: Vec<&String> = words.iter().filter(|words| words.contains("del pref")).collect();
    assert_eq!(deleted.len(), 4, "{deleted:?}");
    for words in deleted {
        let preference = words.split(' ').nth(5).unwrap().parse::<u32>().unwrap();
        assert!((one..one + OF_EACH).contains(&preference), "{words}");
    }
    // Even where both have the same preferences, as they began at the same moment, what leads to the
    // other's table stays, and what leads to the main table until the other ends, too.
    let of_second = listed(&installation(&whole(device()), PORTS, owner(second), &at(one)));
    let [mine, others] = [first, second].map(|pid| routing_table(pid).to_string());
    let deleted = |steps: &[Step]| {
        [mine.as_str(), others.as_str(), "main"].map(|table| {
            let words = steps.iter().map(|step| step.words.join(" "));
            words.filter(|words| words.contains(" rule del ") && words.ends_with(table)).count()
        })
    };
    assert_eq!(deleted(&removal_of_routes(first, &both(&of_first, &of_second))), [2, 0, 0]);
    assert_eq!(deleted(&removal_of_routes(second, &of_second)), [0, 2, 2]);
}

#[test]
fn the_main_table_routes_own_sockets_alone() {
    for plan in [whole(device()), plan(device())] {
        let steps = installation(&plan, PORTS, owner(7), &at(16_028));
        let words = steps.iter().map(|step| step.words.join(" "));
        let main: Vec<String> = words.filter(|words| words.contains("lookup main")).collect();
        assert_eq!(main.len(), 2, "{main:?}");
        assert!(
            main.iter().all(|rule| rule.ends_with("fwmark 0x53756d52 lookup main")),
            "{main:?}"
        );
    }
}

#[test]
fn what_leaves_beside_the_device_is_refused() {
    let text = ruleset(&whole(device()), PORTS, owner(7), &[]);
    let rules = rules_of(&text, "refuse");
    let of = |part: &str| rules.iter().position(|rule| rule.contains(part)).unwrap();
    let refused = rules.len() - 1;
    assert_eq!(rules[refused], "goto refused");
    for passes in ["meta mark 0x53756d52 return", "oifname \"sumrate0\" return", "192.168.0.0/16"] {
        assert!(of(passes) < refused, "{rules:?}");
    }
    assert!(!rules.iter().any(|rule| rule.contains("nfproto")), "both families: {rules:?}");
    // What was redirected stays here; TCP that was not has forgotten its connection.
    let here = of("fib daddr type local return");
    let forgotten = of("oifname \"sumrate0\" meta l4proto tcp goto refused");
    assert!(here < forgotten && forgotten < of("oifname \"sumrate0\" return"), "{rules:?}");
    let taken = rules_of(&text, "redirected");
    assert!(taken.contains(&"oifname \"sumrate0\" goto take"), "what routes lead there: {taken:?}");
    assert!(!text.contains("chain refuse_leaving"), "{text}");
    let some = ruleset(&plan(device()), PORTS, owner(7), &[]);
    let leaving = rules_of(&some, "refuse_leaving");
    let marked = "meta mark != 0x53756d54 return";
    let (lo, device) = ("oifname \"lo\" return", "oifname \"sumrate0\" return");
    assert_eq!(leaving[1..], [marked, lo, device, "drop"]);
    let tproxy = ruleset(&whole(Method::Tproxy { gateway: false }), PORTS, owner(7), &[]);
    let leaving = rules_of(&tproxy, "refuse_leaving");
    assert_eq!(leaving[1..], [marked, lo, "drop"]);
}

#[test]
fn a_family_without_a_listener_is_refused() {
    let ports = Ports { tcp: [4000, 0], dns: [4053, 0], dns_tcp: [4153, 0] };
    for method in [Method::Redirect, Method::Tproxy { gateway: true }] {
        assert!(!ruleset(&plan(method.clone()), PORTS, owner(7), &[]).contains("chain refuse "));
        let text = ruleset(&plan(method), ports, owner(7), &[]);
        for chain in ["refuse", "refuse_names"] {
            let rules = rules_of(&text, chain);
            assert!(rules.contains(&"meta nfproto != ipv6 return"), "{rules:?}");
            assert!(rules.last().unwrap().ends_with("goto refused"), "{rules:?}");
        }
    }
    let text = ruleset(&whole(Method::Tproxy { gateway: true }), ports, owner(7), &[]);
    assert!(rules_of(&text, "refuse_forward").contains(&"meta nfproto != ipv6 return"), "{text}");
    let marked = ruleset(&plan(device()), ports, owner(7), &[]);
    let rules = rules_of(&marked, "refuse");
    assert!(rules.contains(&"meta mark 0x53756d54 meta nfproto ipv6 goto refused"), "{rules:?}");
    let steps = installation(&whole(device()), ports, owner(7), &at(16_028));
    assert!(!steps.iter().any(|step| step.words.contains(&"-6".to_owned())), "{steps:?}");
    let text = &steps.last().unwrap().input;
    let rules = rules_of(text, "refuse");
    let place = |rule: &str| rules.iter().position(|other| *other == rule).unwrap();
    let refused = place("oifname \"sumrate0\" meta nfproto ipv6 goto refused");
    assert!(refused < place("oifname \"sumrate0\" return"), "{rules:?}");
}

#[test]
fn a_dead_daemons_rules_refuse_the_selected() {
    for method in [Method::Redirect, Method::Tproxy { gateway: false }, device()] {
        let step = refusal(&plan(method), owner(7));
        let begin =
            "table inet sumrate_7_99\ndelete table inet sumrate_7_99\ntable inet sumrate_7_99 {";
        assert!(step.input.starts_with(begin), "in one step: {}", step.input);
        let rules = rules_of(&step.input, "refuse");
        let of = |part: &str| rules.iter().position(|rule| rule.contains(part)).unwrap();
        assert!(of("meta mark 0x53756d52 return") < of("203.0.113.9/32"), "{rules:?}");
        assert!(of("203.0.113.9/32") < of("skuid { 1000, 1001 } goto refused"));
        assert!(of("ip daddr != { 203.0.113.0/24 } return") < of("goto refused"));
        let names = rules_of(&step.input, "refuse_names");
        assert!(names.iter().any(|rule| rule.ends_with("th dport 53 goto refused")), "{names:?}");
        for takes in ["redirect to", "tproxy", "oifname", "refuse_leaving"] {
            assert!(!step.input.contains(takes), "{takes}: {}", step.input);
        }
    }
    let gateway = refusal(&whole(Method::Tproxy { gateway: true }), owner(7)).input;
    assert_eq!(rules_of(&gateway, "refuse_forward").last(), Some(&"goto refused"));
}

#[test]
fn nothing_passes_a_listener_that_is_gone() {
    let text = ruleset(&whole(Method::Tproxy { gateway: true }), PORTS, owner(7), &[]);
    let rules = rules_of(&text, "arrive");
    assert_eq!(rules[2..], ["meta nfproto ipv4 drop", "meta nfproto ipv6 drop"]);
}

#[test]
fn questions_over_tcp_are_taken_in_each_mode() {
    for method in [Method::Redirect, Method::Tproxy { gateway: false }, device()] {
        let text = ruleset(&Plan { dns: true, ..whole(method.clone()) }, PORTS, owner(7), &[]);
        let rules = rules_of(&text, "dns");
        for taken in ["ipv4 tcp dport 53 redirect to :4153", "ipv6 tcp dport 53 redirect to :6153"]
        {
            assert!(rules.iter().any(|rule| rule.contains(taken)), "{rules:?}");
        }
        let passes = text.contains("    tcp dport 53 return");
        assert_eq!(passes, method == Method::Tproxy { gateway: false }, "it is not marked too");
    }
}

#[test]
fn http3_is_refused_where_tcp_is_taken() {
    let method = || Method::Tproxy { gateway: true };
    let own = ruleset(&plan(method()), PORTS, owner(7), &[]);
    assert!(!own.contains("dport 443"), "{own}");
    let refusing = Plan { refuse_quic: true, ..plan(method()) };
    let text = ruleset(&refusing, PORTS, owner(7), &[]);
    let output = rules_of(&text, "refuse_quic");
    assert_eq!(
        output.last(),
        Some(&"socket cgroupv2 level 2 \"user.slice/web\" udp dport 443 reject")
    );
    assert!(output.contains(&"ip daddr { 203.0.113.9 } return") || text.contains("203.0.113.9/32"));
    assert_eq!(rules_of(&text, "refuse_quic_forward").last(), Some(&"udp dport 443 reject"));
    assert!(refusal::instead(&refusing).contains("udp dport 443 reject"), "after a crash, too");
}
