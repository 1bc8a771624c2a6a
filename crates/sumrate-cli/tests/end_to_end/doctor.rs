//! `sumrate doctor` in a network of its own, with planted faults, and after its own commands mended them.

use std::process::Command;

use serde_json::Value;

use crate::harness::{json, run};
use crate::schemas::conforms;

/// Two radios, one of them without a route, its filter strict; `$1` is the program.
const NETWORK: &str = r#"
set -e
ip link set lo up
for n in 1 2; do
  ip link add "radio$n" type veth peer name "far$n"
  ip addr add "10.7.$n.2/24" dev "radio$n"
  ip link set "radio$n" up
  ip link set "far$n" up
done
ip route add default via 10.7.1.1 dev radio1
sysctl -qw net.ipv4.conf.all.rp_filter=1 net.ipv4.tcp_mtu_probing=0
ip link set radio2 mtu 1000
say() { "$1" doctor --json || true; }
say "$1"
"#;

/// Runs a script in namespaces of its own; `None` where the kernel does not allow them.
fn in_namespace(script: &str) -> Option<Vec<Value>> {
    let able = Command::new("unshare").args(["-rnm", "true"]).status();
    if !able.is_ok_and(|status| status.success()) {
        test_skip::skipped("the kernel refuses namespaces");
        return None;
    }
    let output = Command::new("unshare")
        .args(["-rnm", "sh", "-c", script, "sh", env!("CARGO_BIN_EXE_sumrate")])
        .env("XDG_CONFIG_HOME", "/nonexistent")
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let reports = serde_json::Deserializer::from_slice(&output.stdout).into_iter();
    Some(reports.map(Result::unwrap).collect())
}

/// Without the errors that follow reports with problems.
fn of_the_doctor(mut printed: Vec<Value>) -> Vec<Value> {
    printed.retain(|report| report["schema"] == "sumrate.doctor.v1");
    printed
}

fn finding<'a>(report: &'a Value, check: &str, interface: Option<&str>) -> Option<&'a Value> {
    report["findings"]
        .as_array()
        .unwrap()
        .iter()
        .find(|finding| finding["check"] == check && finding["interface"].as_str() == interface)
}

fn level(report: &Value, check: &str, interface: Option<&str>) -> String {
    finding(report, check, interface)
        .map_or("absent".into(), |f| f["level"].as_str().unwrap().into())
}

#[test]
fn planted_faults_are_found_and_their_commands_mend_them() {
    // The commands are run as they stand, and the doctor is asked again: first the route is
    // mended, which shows the filter, then that.
    let mended = format!(
        r#"{NETWORK}
mend() {{ "$1" doctor --json > /tmp/found.$$ || true
  python3 -c 'import json,sys; [print(f["mend"]) for f in json.JSONDecoder().raw_decode(open(sys.argv[1]).read())[0]["findings"] if f["mend"] and f["check"] in sys.argv[2:]]' /tmp/found.$$ route mtu reverse-path-filter mtu-probing > /tmp/mend.$$
  sh -e /tmp/mend.$$ > /dev/null; rm /tmp/found.$$ /tmp/mend.$$; }}
mend "$1"
mend "$1"
say "$1"
"#
    );
    let Some(reports) = in_namespace(&mended).map(of_the_doctor) else { return };
    let [before, after] = reports.as_slice() else { panic!("{reports:#?}") };
    for report in [before, after] {
        conforms("doctor", report);
    }
    assert_eq!(level(before, "route", Some("radio1")), "ok", "{before:#}");
    assert_eq!(level(before, "route", Some("radio2")), "warning", "{before:#}");
    assert_eq!(level(before, "mtu-probing", None), "warning");
    for (check, interface) in [
        ("route", Some("radio2")),
        ("reverse-path-filter", Some("radio2")),
        ("mtu", Some("radio2")),
        ("mtu-probing", None),
    ] {
        assert_eq!(level(after, check, interface), "ok", "{check}: {after:#}");
    }
    assert_eq!(level(after, "interfaces", None), "ok");
}

#[test]
fn a_strict_filter_and_a_small_mtu_are_problems_of_that_interface() {
    let planted = format!(
        "{NETWORK}\nip route add default via 10.7.2.1 dev radio2 metric 1001\nsay \"$1\"\n"
    );
    let Some(reports) = in_namespace(&planted).map(of_the_doctor) else { return };
    let report = &reports[1];
    assert_eq!(level(report, "reverse-path-filter", Some("radio1")), "ok", "{report:#}");
    assert_eq!(level(report, "reverse-path-filter", Some("radio2")), "problem", "{report:#}");
    let mend = &finding(report, "reverse-path-filter", Some("radio2")).unwrap()["mend"];
    assert_eq!(mend, "sysctl -w net.ipv4.conf.radio2.rp_filter=2");
    assert_eq!(level(report, "mtu", Some("radio2")), "warning");
    assert_eq!(level(report, "mtu", Some("radio1")), "ok");
}

#[test]
fn a_bridge_of_containers_without_a_route_is_no_fault() {
    let planted = format!(
        r#"{NETWORK}
ip link add docker0 type bridge forward_delay 0 || exit 0
ip addr add 172.17.0.1/16 dev docker0
ip link add port type veth peer name container
ip link set port master docker0
for name in docker0 port container; do ip link set $name up; done
for try in $(seq 50); do ip link show docker0 | grep -q "state UP" && break; sleep 0.1; done
say "$1"
"#
    );
    let Some(reports) = in_namespace(&planted).map(of_the_doctor) else { return };
    let [_, report] = reports.as_slice() else {
        return test_skip::skipped("the kernel makes no bridges");
    };
    let left_out = finding(report, "interface", Some("docker0")).unwrap_or(&Value::Null);
    assert_eq!(left_out["level"], "ok", "{report:#}");
    assert!(left_out["found"].as_str().unwrap().contains("not used as a path"), "{left_out}");
    assert_eq!(level(report, "route", Some("docker0")), "absent");
    let usable = finding(report, "interfaces", None).unwrap()["found"].to_string();
    assert!(!usable.contains("docker0"), "{usable}");
    // A radio without a route is said all the same.
    assert_eq!(level(report, "route", Some("radio2")), "warning", "{report:#}");
}

/// What `sumrate up` needs for itself can be had by everybody; what takes the connections of others
/// fails only a configuration that asks for it.
#[test]
fn what_capture_needs_is_missed_where_it_is_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("sumrate/config.toml");
    std::fs::create_dir(file.parent().unwrap()).unwrap();
    std::fs::write(&file, "[up]\nlink = \"@home.link\"\ntun = true\n").unwrap();
    let place = folder.path().display();
    // The device is hidden from one who asks for it, and from one who does not.
    let script = format!(
        r#"say() {{ env XDG_CONFIG_HOME="$2" "$1" doctor --json || true; }}
[ ! -e /dev/net ] || mount -t tmpfs none /dev/net || exit 9
say "$1" {place}
say "$1" /nonexistent
"#
    );
    let Some(reports) = in_namespace(&script).map(of_the_doctor) else { return };
    let [asked, not_asked] = reports.as_slice() else { panic!("{reports:#?}") };
    let about = |report: &Value| {
        conforms("doctor", report);
        let findings = report["findings"].as_array().unwrap().clone();
        let found = findings.into_iter().find(|finding| {
            finding["check"] == "capture" && finding["found"].to_string().contains("/dev/net/tun")
        });
        found.unwrap_or_else(|| panic!("{report:#}"))
    };
    let (asked, not_asked) = (about(asked), about(not_asked));
    assert_eq!((&asked["level"], &asked["mend"]), (&"problem".into(), &"modprobe tun".into()));
    assert!(asked["found"].as_str().unwrap().contains("the configuration asks for --tun"));
    assert_eq!(not_asked["level"], "warning", "{not_asked}");
}

#[test]
fn no_interface_at_all_is_a_problem_with_its_exit_code() {
    let Some(reports) = in_namespace("\"$1\" doctor --json && exit 9; [ $? = 1 ]") else { return };
    conforms("doctor", &reports[0]);
    assert_eq!(level(&reports[0], "interfaces", None), "problem");
    conforms("error", &reports[1]);
}

#[test]
fn this_machine_can_be_examined() {
    let directory = tempfile::tempdir().unwrap();
    let output = run(directory.path(), &["doctor", "--json"]);
    assert!(matches!(output.status.code(), Some(0 | 1)));
    if output.status.success() {
        conforms("doctor", &json(&output));
    }
    let wrong = run(directory.path(), &["doctor", "http://x"]);
    assert_eq!(wrong.status.code(), Some(2));
}
