//! Measurements in both directions.

use std::process::Stdio;
use std::time::Instant;

use fbdt_proto::SchedulerKind;
use serde_json::Value;

use crate::harness::{PATIENCE, Server, json, run, stderr, sumrate};
use crate::schemas::conforms;

const PATHS: [&str; 4] = ["--path", "a=127.0.0.1", "--path", "b=127.0.0.2"];

fn bench(server: &Server, more: &[&str]) -> Value {
    let link = server.link();
    let output = run(server.runtime(), &[&["bench", &link, "--json"][..], &PATHS, more].concat());
    assert!(output.status.success(), "{more:?}: {}", stderr(&output));
    let report = json(&output);
    conforms("bench", &report);
    assert!(!output.stdout.windows(3).any(|bytes| bytes == b"&c="), "a secret in the result");
    report
}

fn sum(report: &Value, list: &str, key: &str) -> f64 {
    report[list].as_array().unwrap().iter().map(|entry| entry[key].as_f64().unwrap()).sum()
}

#[test]
fn a_number_of_bytes_in_both_directions_and_modes() {
    let server = Server::start(&["--scheduler", "two-ended"]);
    for more in [
        vec!["--bytes", "30Mi", "--verify"],
        vec!["--bytes", "30Mi", "--reverse", "--verify"],
        vec!["--bytes", "30Mi", "--streams", "3"],
        vec!["--bytes", "30Mi", "--scheduler", "two-ended"],
        vec!["--bytes", "30Mi", "--scheduler", "minrtt", "--verify"],
        vec!["--bytes", "30Mi", "--scheduler", "redundant"],
        vec!["--bytes", "2Mi", "--window-mode", "thesis", "--redundancy", "rtt-wait"],
        vec!["--bytes", "30Mi", "--redundancy", "off", "--forward", "b", "--cc", "reno"],
    ] {
        let report = bench(&server, &more);
        let bytes = if more[1] == "2Mi" { 2 << 20 } else { 30 << 20 };
        assert_eq!(report["bytes"], bytes, "{more:?}");
        assert_eq!(report["paths"][1]["name"], "b");
        // Every byte came by some path; the control stream's few come on top.
        assert!(sum(&report, "paths", "bytes") >= f64::from(bytes) * 0.99, "{report}");
        assert_eq!(report["verified"], more.contains(&"--verify"));
        let reverse = more.contains(&"--reverse");
        assert_eq!(report["direction"] == "server_to_client", reverse);
        let two_ended = reverse || more.contains(&"two-ended");
        assert_eq!(report["scheduler"] == "two-ended", two_ended, "{more:?}");
    }
}

#[test]
fn every_scheduler_delivers_every_byte_in_both_directions() {
    for kind in SchedulerKind::ALL {
        let scheduler = ["--scheduler", kind.name()];
        let server = Server::start(&scheduler);
        for direction in [&[][..], &["--reverse"]] {
            let asked = ["--bytes", "4Mi", "--verify"];
            let report = bench(&server, &[&asked[..], &scheduler, direction].concat());
            assert_eq!(report["scheduler"], kind.name());
            assert_eq!(report["bytes"], 4 << 20, "{kind:?} {direction:?}");
            assert_eq!(report["verified"], true, "{kind:?} {direction:?}");
            assert_eq!(report["direction"] == "server_to_client", !direction.is_empty());
        }
    }
}

#[test]
fn paths_are_used_as_policies_say() {
    let server = Server::start(&[]);
    let report = bench(&server, &["--bytes", "8Mi", "--policy", "b=backup"]);
    assert_eq!(report["bytes"], 8 << 20);
    let of_backup = report["paths"][1]["bytes"].as_u64().unwrap();
    assert!(of_backup < 100_000, "a backup carries next to nothing: {report}");
    for (policy, why) in [
        ("b=backup,quota=1G", "takes no quota"),
        ("c=backup", "the paths are: a, b"),
        ("b=fast", "is not a setting"),
    ] {
        let link = server.link();
        let arguments = ["bench", &link, "--bytes", "1Mi", "--policy", policy];
        let output = run(server.runtime(), &[&arguments[..], &PATHS].concat());
        assert_eq!(output.status.code(), Some(2), "{policy}: {}", stderr(&output));
        assert!(stderr(&output).contains(why), "{policy}: {}", stderr(&output));
    }
}

#[test]
fn a_time_in_both_directions_with_intervals_and_warmup() {
    let server = Server::start(&[]);
    for direction in [&[][..], &["--reverse"]] {
        let arguments = ["--time", "0.5", "--warmup", "0.2", "--interval", "0.05"];
        let report = bench(&server, &[&arguments, direction].concat());
        assert_eq!(report["duration_s"], 0.5);
        assert_eq!(report["intervals"].as_array().unwrap().len(), 10);
        let mean = sum(&report, "intervals", "goodput_mbps") / 10.0;
        let goodput = report["goodput_mbps"].as_f64().unwrap();
        assert!((mean - goodput).abs() < 1e-6 * goodput, "{mean} {goodput}");
    }
}

#[test]
fn windows_of_a_given_size() {
    let server = Server::start(&["--window", "16Ki"]);
    let report = bench(&server, &["--bytes", "4Mi", "--reverse"]);
    assert_eq!(report["window_bytes"], serde_json::json!({ "min": 16384, "max": 16384 }));
    let thesis = ["--window-mode", "thesis", "--thesis-window", "256Ki"];
    let report = bench(&server, &[&["--bytes", "4Mi"][..], &thesis].concat());
    assert_eq!(report["window_bytes"], serde_json::json!({ "min": 262_144, "max": 262_144 }));
}

#[test]
fn a_thousand_streams_all_complete() {
    let server = Server::start(&[]);
    for direction in [&[][..], &["--reverse"]] {
        let report =
            bench(&server, &[&["--bytes", "64Mi", "--streams", "1000"], direction].concat());
        assert_eq!(
            (report["bytes"].as_u64(), report["streams"].as_u64()),
            (Some(64 << 20), Some(1000))
        );
        let jain = report["jain_index"].as_f64().unwrap();
        assert!((0.001..=1.0).contains(&jain), "{jain}");
    }
    let output = run(server.runtime(), &["bench", &server.link(), "--streams", "5000"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("1..=4000"), "{}", stderr(&output));
}

#[test]
fn the_laboratory_mode_without_encryption() {
    let server = Server::start(&["--insecure-plaintext"]);
    let report = bench(&server, &["--bytes", "5Mi", "--insecure-plaintext"]);
    assert_eq!(report["bytes"], 5 << 20);
    let output = run(server.runtime(), &["bench", &server.link(), "--bytes", "1Ki"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("if this is a lab"), "{}", stderr(&output));
}

#[test]
fn held_ones_start_when_their_input_ends() {
    let server = Server::start(&[]);
    let link = server.link();
    let mut command = sumrate(server.runtime());
    command.args([&["bench", &link, "--bytes", "1Mi", "--json", "--hold"][..], &PATHS].concat());
    let mut held =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let begun = Instant::now();
    let sessions = || {
        let report = json(&run(server.runtime(), &["status", "--json"]));
        report["sessions"].as_array().unwrap().clone()
    };
    while !sessions().iter().any(|session| session["paths"].as_array().unwrap().len() == 2) {
        assert!(begun.elapsed() < PATIENCE, "it does not connect");
    }
    let received = sessions()[0]["received_bytes"].as_u64().unwrap();
    assert!(received < 1 << 20 && held.try_wait().unwrap().is_none(), "{received} bytes already");
    drop(held.stdin.take());
    let output = held.wait_with_output().unwrap();
    assert_eq!(json(&output)["bytes"], 1 << 20);
}

#[test]
fn people_get_words() {
    let server = Server::start(&[]);
    let output = run(server.runtime(), &["bench", &server.link(), "--bytes", "1Mi", "--verify"]);
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.contains("goodput") && said.contains("every byte verified"), "{said}");
}
