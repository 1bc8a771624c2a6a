//! The JSON of every command is what its schema in `docs/schemas` says.

use std::io::Read;
use std::os::unix::net::UnixStream;
use std::path::Path;

use serde_json::Value;

use crate::harness::{PATIENCE, Server, json, run};
use nix::sys::signal::Signal;

/// Fails with every difference from the schema.
pub(crate) fn conforms(name: &str, value: &Value) {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../docs/schemas/{name}.v1.json"));
    let schema: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let errors: Vec<String> = validator
        .iter_errors(value)
        .map(|error| format!("{}: {error}", error.instance_path()))
        .collect();
    assert!(errors.is_empty(), "{name}: {errors:#?}\n{value:#}");
}

/// The history of the daemon with this status socket, once there is a sample of a path.
fn history(status: &Path) -> Value {
    let begun = std::time::Instant::now();
    loop {
        let socket = status.with_extension("history");
        let mut answer = Vec::new();
        UnixStream::connect(socket).unwrap().read_to_end(&mut answer).unwrap();
        let history: Value = serde_json::from_slice(&answer).unwrap();
        if history["paths"] != serde_json::json!([]) {
            return history;
        }
        assert!(begun.elapsed() < PATIENCE, "no sample: {history}");
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
}

#[test]
#[should_panic(expected = "goodput_mbps")]
fn a_missing_field_is_noticed() {
    let report = serde_json::json!({ "schema": "sumrate.bench.v1" });
    conforms("bench", &report);
}

#[test]
fn events_of_serve_and_up() {
    let mut server = Server::start(&[]);
    conforms("serve", &server.daemon.first);
    let ready = server.runtime().join("ready");
    let client = server.client(&["--ready-file", ready.to_str().unwrap()]);
    conforms("up", &client.daemon.first);
    let written: Value = serde_json::from_slice(&std::fs::read(&ready).unwrap()).unwrap();
    assert_eq!(written, client.daemon.first);
    conforms("serve", &server.daemon.wait_for("session_opened"));
    server.kill();
    let socket = client.status_socket();
    let ask = |json: &[&str]| {
        let arguments = [json, &["status", "--socket", socket.to_str().unwrap()]].concat();
        run(server.runtime(), &arguments)
    };
    let begun = std::time::Instant::now();
    let outage = loop {
        assert!(begun.elapsed() < PATIENCE, "no outage in the status");
        // The flag may stand before the command, too.
        let status = json(&ask(&["--json"]));
        conforms("status", &status);
        if !status["outage"].is_null() {
            break status["outage"].clone();
        }
    };
    assert!(outage["last_error"].as_str().unwrap().contains("on loopback"), "{outage}");
    let text = String::from_utf8(ask(&[]).stdout).unwrap();
    assert!(text.contains("the server is unreachable for"), "{text}");
    server.start_again(&[]);
    conforms("up", &client.daemon.wait_for("session_lost"));
    conforms("up", &client.daemon.wait_for("session_restored"));
    client.daemon.signal(Signal::SIGINT);
    conforms("up", &client.daemon.wait_for("stopped"));
    conforms("serve", &server.daemon.wait_for("session_closed"));
    server.daemon.signal(Signal::SIGINT);
    conforms("serve", &server.daemon.wait_for("stopped"));
}

#[test]
fn status_credential_and_error() {
    let server = Server::start(&[]);
    let web = crate::web::start("127.0.0.1");
    let client = server.client(&["--path", "a=127.0.0.1"]);
    // A connection that stays open, so that there is a stream to describe.
    let held = std::net::TcpStream::connect(client.socks()).unwrap();
    let socket = client.status_socket();
    let status = run(server.runtime(), &["status", "--json", "--socket", socket.to_str().unwrap()]);
    conforms("status", &json(&status));
    drop((held, web));
    let there = server.daemon.first["status_socket"].as_str().unwrap();
    for socket in [socket.as_path(), Path::new(there)] {
        let history = history(socket);
        conforms("history", &history);
        assert_eq!(history["paths"][0]["name"], "a", "{history}");
    }
    conforms("status", &json(&run(server.runtime(), &["status", "--json", "--socket", there])));
    let state = server.runtime().join("state");
    let credential = |more: &[&str]| {
        let state = state.to_str().unwrap();
        let arguments = [&["credential"], more, &["--json", "--state", state]].concat();
        let answer = json(&run(server.runtime(), &arguments));
        let schema = if answer["exit_code"].is_null() { "credential" } else { "error" };
        conforms(schema, &answer);
        answer
    };
    let added = credential(&["add", "--advertise", "192.0.2.1:7443"]);
    let limits = ["--rate", "1M", "--quota", "2Gi", "--destination", "[2001:db8::/32]:443"];
    let limited = credential(&[&["add", "--advertise", "192.0.2.1:7443"], &limits[..]].concat());
    assert_eq!(limited["added"]["destinations"][0], "[2001:db8::/32]:443");
    assert_eq!(
        (&limited["added"]["quota"], &limited["added"]["used"]),
        (&(2u64 << 30).into(), &0.into())
    );
    credential(&["list"]);
    let id = added["added"]["id"].as_str().unwrap();
    assert_eq!(credential(&["revoke", id])["revoked"], id);
    assert_eq!(credential(&["revoke", id])["exit_code"], 2);
}
