//! A revoked credential: what it held is cut, nobody else notices. How soon is shown on a clock that
//! stands still, in `fbdt`.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc;

use crate::harness::{PATIENCE, Server, json, run, stderr};
use crate::web;

/// A target that sends for ever; says when its connection is cut.
fn endless() -> (SocketAddr, mpsc::Receiver<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (cut, when_cut) = mpsc::channel();
    std::thread::spawn(move || {
        let (mut connection, _) = listener.accept().unwrap();
        while connection.write_all(&[7; 1 << 16]).is_ok() {}
        let _ = cut.send(());
    });
    (address, when_cut)
}

/// A path that is dialled anew before the server has looked for revoked credentials is refused, which
/// tells the client first.
fn tells_of_revocation(event: &serde_json::Value) -> bool {
    let reason = event["reason"].as_str().unwrap();
    ["the credential was revoked", "the server has forgotten this session"]
        .iter()
        .any(|known| reason.contains(known))
}

#[test]
fn what_a_revoked_client_does_is_cut_at_both_ends_and_others_go_on() {
    let server = Server::start(&["--allow", "127.0.0.0/8"]);
    let mut revoked = server.client_with(&server.credential(&[]), &[]);
    let opened = server.daemon.wait_for("session_opened");
    let other = server.client(&[]);
    let (target, target_cut) = endless();
    let mut download = TcpStream::connect(revoked.http()).unwrap();
    write!(download, "CONNECT {target} HTTP/1.1\r\n\r\n").unwrap();
    let mut first = [0; 1 << 16];
    download.read_exact(&mut first).unwrap();
    assert!(first.starts_with(b"HTTP/1.1 200"));
    let (ended, when_ended) = mpsc::channel();
    std::thread::spawn(move || {
        let mut piece = [0; 1 << 16];
        while matches!(download.read(&mut piece), Ok(1..)) {}
        let _ = ended.send(());
    });
    let state = server.runtime().join("state");
    let id = opened["credential"].as_str().unwrap();
    let revoke = ["credential", "revoke", id, "--json", "--state", state.to_str().unwrap()];
    assert_eq!(json(&run(server.runtime(), &revoke))["revoked"], id);
    // The server ends the session, the target and the application lose their connections, and the
    // client, which asks again, is told that there will be no other session.
    let closed = server.daemon.wait_for("session_closed");
    assert_eq!(closed["session"], opened["session"]);
    assert!(tells_of_revocation(&closed), "{closed}");
    target_cut.recv_timeout(PATIENCE).expect("the target's connection is cut");
    when_ended.recv_timeout(PATIENCE).expect("the application's connection is cut");
    let lost = revoked.daemon.wait_for("session_lost");
    assert!(tells_of_revocation(&lost), "{lost}");
    assert_eq!(revoked.daemon.wait().code(), Some(1));
    let web = web::start("127.0.0.1");
    let output = other.curl_socks(&[&format!("http://{web}/1000")]);
    assert_eq!(output.stdout, web::body(1000), "{}", stderr(&output));
    let list = ["credential", "list", "--json", "--state", state.to_str().unwrap()];
    let left = json(&run(server.runtime(), &list))["credentials"].clone();
    assert!(left.as_array().unwrap().iter().all(|credential| credential["id"] != id), "{left}");
    let again =
        run(server.runtime(), &["credential", "revoke", id, "--state", state.to_str().unwrap()]);
    assert_eq!(again.status.code(), Some(2), "{}", stderr(&again));
}
