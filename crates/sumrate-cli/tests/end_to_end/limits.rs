//! Credentials that may not do everything.

use std::time::Instant;

use crate::harness::{Server, json, run, stderr};
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

#[test]
fn a_rate_slows_and_breaks_nothing() {
    let web = web::start("127.0.0.1");
    let server = Server::start(&ALLOW);
    let client = server.client_with(&server.credential(&["--rate", "2M"]), &[]);
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
    let bench = run(server.runtime(), &["bench", &link, "--bytes", "1K"]);
    assert!(stderr(&bench).contains("not for a credential with limits"), "{}", stderr(&bench));
}
