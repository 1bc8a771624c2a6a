//! Credentials that may not do everything.

use std::time::Instant;

use crate::harness::{PATIENCE, Server, curl, json, run, stderr};
use crate::web;

const ALLOW: [&str; 2] = ["--allow", "127.0.0.0/8"];

#[test]
fn a_quota_ends_a_transfer_and_outlives_the_server() {
    let web = web::start("127.0.0.1");
    let mut server = Server::start(&ALLOW);
    let link = server.credential(&["--quota", "1M"]);
    let client = server.client_with(&link, &[]);
    let get = |size: usize| client.curl_socks(&[&format!("http://{web}/{size}")]);
    assert_eq!(get(300_000).stdout, web::body(300_000));
    let cut = get(5_000_000);
    assert!(!cut.status.success() && cut.stdout.len() < 1 << 20, "{} bytes", cut.stdout.len());
    assert!(!get(10).status.success());
    drop(client);
    // SIGTERM writes it down; after a SIGKILL the last second would be forgotten.
    server.daemon.signal(nix::sys::signal::Signal::SIGTERM);
    server.daemon.wait();
    let state = server.runtime().join("state");
    let list = ["credential", "list", "--json", "--state", state.to_str().unwrap()];
    let listed = json(&run(server.runtime(), &list));
    let mut credentials = listed["credentials"].as_array().unwrap().iter();
    let laptop = credentials.find(|credential| credential["name"] == "laptop").unwrap();
    assert!(laptop["used"].as_u64().unwrap() > laptop["quota"].as_u64().unwrap(), "{laptop}");
    server.start_again(&ALLOW);
    let client = server.client_with(&link, &[]);
    assert!(!client.curl_socks(&[&format!("http://{web}/10")]).status.success());
    // Others are not concerned.
    let other = server.client(&[]);
    let output = other.curl_socks(&[&format!("http://{web}/5000000")]);
    assert_eq!(output.stdout.len(), 5_000_000, "{}", stderr(&output));
}

/// Nothing else is carried: a client that only looks uses its quota, too.
#[test]
fn reports_count_as_use_of_the_credential() {
    let mut server = Server::start(&ALLOW);
    let client = server.client_with(&server.credential(&["--quota", "1M"]), &[]);
    let socket = client.status_socket();
    let ask = ["status", "--json", "--socket", socket.to_str().unwrap()];
    let begun = Instant::now();
    while !json(&run(server.runtime(), &ask))["sessions"][0]["paths"][0]["far"].is_object() {
        assert!(begun.elapsed() < PATIENCE, "the server reports nothing");
    }
    server.daemon.signal(nix::sys::signal::Signal::SIGTERM);
    server.daemon.wait();
    let state = server.runtime().join("state");
    let list = ["credential", "list", "--json", "--state", state.to_str().unwrap()];
    let listed = json(&run(server.runtime(), &list));
    let mut credentials = listed["credentials"].as_array().unwrap().iter();
    let laptop = credentials.find(|credential| credential["name"] == "laptop").unwrap();
    assert!(laptop["used"].as_u64().unwrap() > 100, "{laptop}");
}

#[test]
fn a_second_server_on_a_state_directory_is_refused() {
    let mut server = Server::start(&[]);
    let state = server.runtime().join("state");
    let state = state.to_str().unwrap();
    let second = || run(server.runtime(), &["serve", "--listen", "127.0.0.1:0", "--state", state]);
    let refused = second();
    assert_eq!(refused.status.code(), Some(2), "{refused:?}");
    let holder = format!("process {}", server.daemon.id());
    assert!(stderr(&refused).contains(&holder), "{}", stderr(&refused));
    // Credentials are made, listed and revoked beside it.
    server.credential(&[]);
    let list = run(server.runtime(), &["credential", "list", "--json", "--state", state]);
    let listed = json(&list);
    let mut credentials = listed["credentials"].as_array().unwrap().iter();
    let added = credentials.find(|credential| credential["name"] == "laptop").unwrap();
    let id = added["id"].as_str().unwrap();
    let revoked = run(server.runtime(), &["credential", "revoke", id, "--state", state]);
    assert!(revoked.status.success(), "{}", stderr(&revoked));
    // A server that was killed has nothing any more.
    server.restart(&[]);
    assert!(server.daemon.is_running());
}

#[test]
fn closed_ports_are_refused_until_they_are_opened() {
    let answer = |arguments: &[&str], target: &str| {
        let server = Server::start(arguments);
        let client = server.client(&[]);
        let proxy = format!("http://{}", client.http());
        let output = curl(&["--proxy", &proxy, &format!("http://{target}/")]);
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    for (arguments, target) in [
        (&[][..], "203.1.113.5:25"),
        (&["--deny-port", "6667"], "203.1.113.5:6667"),
        (&["--deny-port", "6667"], "203.1.113.5:25"),
    ] {
        let body = answer(arguments, target);
        assert!(body.contains(target) && body.contains("--allow-port"), "{target}: {body}");
    }
    let body = answer(&["--allow-port", "25"], "10.0.0.5:25");
    assert!(body.contains("it is in a private network"), "{body}");
}

#[test]
fn a_rate_slows_and_breaks_nothing() {
    let web = web::start("127.0.0.1");
    let server = Server::start(&ALLOW);
    let client = server.client_with(&server.credential(&["--rate", "2Mi"]), &[]);
    let url = format!("http://{web}/3000000");
    let begun = Instant::now();
    let output = client.curl_socks(&[&url]);
    assert!(output.stdout == web::body(3_000_000), "{}", stderr(&output));
    // 2 MiB a second; a burst of a tenth of that may pass at once.
    let least = 0.8 * 3_000_000.0 / f64::from(2 << 20);
    assert!(begun.elapsed().as_secs_f64() >= least, "{:?}, less than {least}", begun.elapsed());
}

#[test]
fn destinations_bound_what_a_credential_reaches() {
    let (here, there) = (web::start("127.0.0.1"), web::start("127.0.0.1"));
    let server = Server::start(&ALLOW);
    let link = server.credential(&["--destination", &here.to_string()]);
    let client = server.client_with(&link, &[]);
    let reached = client.curl_http(&[&format!("http://{here}/10")]);
    assert_eq!(reached.stdout, web::body(10), "{}", stderr(&reached));
    let refused = client.curl_http(&["-v", &format!("http://{there}/10")]);
    assert!(!refused.status.success());
    assert!(stderr(&refused).contains("403"), "{}", stderr(&refused));
    let bench = run(server.runtime(), &["bench", &link, "--bytes", "1Ki"]);
    assert!(stderr(&bench).contains("not for a credential with limits"), "{}", stderr(&bench));
}
