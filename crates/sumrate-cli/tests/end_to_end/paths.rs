//! Several paths, and a session that outlives its server.

use std::io::{Read, Write};
use std::net::TcpStream;

use serde_json::Value;

use crate::harness::{Server, json, run, stderr};
use crate::policies::until;
use crate::schemas::conforms;
use crate::web;

#[test]
fn status_names_every_path_and_the_session_of_both_ends() {
    let server = Server::start(&[]);
    let client = server.client(&["--path", "wifi=127.0.0.1", "--path", "wigig=127.0.0.2"]);
    let socket = client.status_socket();
    let ask = |extra: &[&str]| {
        let socket = socket.to_str().unwrap();
        run(server.runtime(), &[&["status", "--socket", socket], extra].concat())
    };
    loop {
        let report = json(&ask(&["--json"]));
        let paths = report["sessions"][0]["paths"].as_array().unwrap().clone();
        if paths.len() == 2 && paths.iter().all(|path| path["health"] == "active") {
            assert_eq!(paths[0]["name"], "wifi");
            assert!(paths[1]["local"].as_str().unwrap().starts_with("127.0.0.2:"));
            assert_eq!(paths[1]["remote"], server.listen());
            break;
        }
    }
    let text = |output: std::process::Output| String::from_utf8(output.stdout).unwrap();
    let table = text(ask(&[]));
    assert!(table.contains("wifi") && !table.contains("127.0.0.2:"), "{table}");
    let all = text(ask(&["--all"]));
    assert!(all.contains("127.0.0.2:") && all.contains("in flight"), "{all}");
    // Without a flag: of both processes, the client first; JSON is of one; who explains is the client.
    let both = text(run(server.runtime(), &["status"]));
    assert!(both.starts_with("Client (process ") && both.contains("\nServer (process "), "{both}");
    let ambiguous = run(server.runtime(), &["status", "--json"]);
    assert_eq!(ambiguous.status.code(), Some(2), "two processes run: {}", stderr(&ambiguous));
    assert!(stderr(&ambiguous).contains("--socket"), "{}", stderr(&ambiguous));
    let explained = run(server.runtime(), &["explain", "--json", "--watch", "0"]);
    assert_eq!(json(&explained)["paths"][0]["credential"], serde_json::Value::Null);

    let there = server.daemon.first["status_socket"].as_str().unwrap();
    let there = json(&run(server.runtime(), &["status", "--json", "--socket", there]));
    assert_eq!(there["sessions"][0]["id"], client.daemon.first["session"]);
}

#[test]
fn f15_both_ends_know_which_path_stands_by_and_leave_it_alone() {
    let server = Server::start(&[]);
    let link = server.credential(&[]);
    let paths = ["--path", "wifi=127.0.0.1", "--path", "lte=127.0.0.2,backup"];
    for reverse in [&[][..], &["--reverse"][..]] {
        let arguments = [&["bench", &link, "--bytes", "8Mi", "--json"], &paths[..], reverse];
        let report = json(&run(server.runtime(), &arguments.concat()));
        let carried = |name: &str| {
            let paths = report["paths"].as_array().unwrap();
            let path = paths.iter().find(|path| path["name"] == name).unwrap();
            path["bytes"].as_u64().unwrap() + path["redundant_bytes"].as_u64().unwrap()
        };
        assert_eq!(carried("lte"), 0, "{report:#}");
        assert!(carried("wifi") >= 8 << 20, "{report:#}");
    }
    let backup = ["--path", "wifi=127.0.0.1", "--path", "lte=127.0.0.2", "--backup", "lte"];
    let client = server.client(&backup);
    let there = server.daemon.first["status_socket"].as_str().unwrap().to_owned();
    for socket in [client.status_socket().to_str().unwrap().to_owned(), there] {
        loop {
            let output = run(server.runtime(), &["status", "--json", "--socket", &socket]);
            let report = json(&output);
            let found: Vec<_> = report["sessions"]
                .as_array()
                .unwrap()
                .iter()
                .flat_map(|session| session["paths"].as_array().unwrap())
                .filter(|path| path["name"] == "lte" && path["health"] == "active")
                .map(|path| (path["priority"].clone(), path["why_idle"].clone()))
                .collect();
            let standing = |(priority, why): &(serde_json::Value, serde_json::Value)| {
                priority == "backup" && why.as_str().unwrap().starts_with("standby")
            };
            if found.iter().any(standing) {
                conforms("status", &report);
                break;
            }
        }
    }
    let unknown = run(server.runtime(), &["bench", &link, "--path", "a=lo", "--backup", "b"]);
    assert_eq!(unknown.status.code(), Some(2), "{}", stderr(&unknown));
}

#[test]
fn a_restarted_server_gets_a_new_session_and_the_proxy_goes_on() {
    let web = web::start("127.0.0.1");
    let mut server = Server::start(&["--allow", "127.0.0.1"]);
    let client = server.client(&["--path", "a=127.0.0.1", "--path", "b=127.0.0.2"]);
    let url = format!("http://{web}/1000");
    assert!(client.curl_socks(&[&url]).status.success());
    server.restart(&["--allow", "127.0.0.1"]);
    client.daemon.wait_for("session_lost");
    // What is asked for between two sessions waits for the next one.
    let output = client.curl_socks(&[&url]);
    assert_eq!(output.stdout, web::body(1000), "{}", stderr(&output));
    client.daemon.wait_for("session_restored");
}

#[test]
fn who_answers_in_the_servers_place_does_not_end_the_client() {
    let web = web::start("127.0.0.1");
    let mut server = Server::start(&["--allow", "127.0.0.1"]);
    let mut client = server.client(&["--linger", "1"]);
    server.kill();
    // Seven bytes that anybody can send: a fatal alert, no application protocol.
    let impostor = std::net::TcpListener::bind(server.listen()).unwrap();
    let (said, answers) = std::sync::mpsc::channel();
    let answering = std::thread::spawn(move || {
        for connection in impostor.incoming() {
            let _ = connection.unwrap().write_all(&[0x15, 3, 3, 0, 2, 2, 0x78]);
            if said.send(()).is_err() {
                break;
            }
        }
    });
    client.daemon.wait_for("session_lost");
    // What it was dialling until then is over; each attempt at a new session has a connection, and they
    // become rare.
    while answers.try_recv().is_ok() {}
    for _ in 0..4 {
        answers.recv_timeout(std::time::Duration::from_secs(60)).unwrap();
    }
    assert!(client.daemon.is_running(), "it goes on dialling");
    drop(answers);
    let _ = TcpStream::connect(server.listen());
    answering.join().unwrap();
    server.start_again(&["--allow", "127.0.0.1"]);
    client.daemon.wait_for("session_restored");
    assert!(client.curl_socks(&[&format!("http://{web}/1000")]).status.success());
}

#[test]
fn a_lost_session_looks_like_a_failure_to_applications_and_not_like_an_end() {
    let web = web::start("127.0.0.1");
    let mut server = Server::start(&["--allow", "127.0.0.1"]);
    let client = server.client(&[]);
    let mut connection = TcpStream::connect(client.http()).unwrap();
    let request = format!("CONNECT {web} HTTP/1.1\r\n\r\nGET /60000000 HTTP/1.1\r\n\r\n");
    connection.write_all(request.as_bytes()).unwrap();
    connection.read_exact(&mut [0; 100_000]).unwrap();
    server.restart(&[]);
    let end = std::io::copy(&mut connection, &mut std::io::sink());
    assert!(end.is_err(), "{end:?}");
}

#[test]
fn a_revoked_credential_ends_the_client_with_its_reason() {
    let server = Server::start(&[]);
    let mut client = server.client(&[]);
    let state = server.runtime().join("state");
    let state = state.to_str().unwrap();
    let listed = json(&run(server.runtime(), &["credential", "list", "--state", state, "--json"]));
    let id = listed["credentials"][0]["id"].as_str().unwrap();
    assert!(
        run(server.runtime(), &["credential", "revoke", id, "--state", state]).status.success()
    );
    assert_eq!(client.daemon.wait().code(), Some(1));
}

#[test]
fn an_added_credential_opens_a_session() {
    let server = Server::start(&[]);
    let link = server.credential(&[]);
    let bench = run(server.runtime(), &["bench", &link, "--bytes", "100Ki", "--json"]);
    assert_eq!(json(&bench)["bytes"], 102_400, "{}", stderr(&bench));
}

#[test]
fn a_dead_path_says_why_in_every_view() {
    let server = Server::start(&[]);
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    drop(taken);
    let there = format!("lte=127.0.0.2@127.0.0.1:{port}");
    let client = server.client(&["--path", "wifi=127.0.0.1", "--path", &there]);
    let socket = client.status_socket();
    let ask = |arguments: &[&str]| {
        let output =
            run(server.runtime(), &[arguments, &["--socket", socket.to_str().unwrap()]].concat());
        assert!(output.status.success(), "{arguments:?}: {}", stderr(&output));
        output
    };
    let path = |status: &Value, name: &str| {
        let paths = status["sessions"][0]["paths"].as_array().cloned().unwrap_or_default();
        paths.into_iter().find(|path| path["name"] == name).unwrap_or_default()
    };
    let status = || json(&ask(&["status", "--json"]));
    let refused = until("an error", status, |status| {
        path(status, "lte")["last_error"]["reason"]
            .as_str()
            .is_some_and(|reason| reason.contains("refused"))
    });
    conforms("status", &refused);
    let lte = path(&refused, "lte");
    assert!(lte["last_error"]["ago_s"].as_f64().unwrap() < 60.0, "{lte:#}");
    assert!(path(&refused, "wifi")["last_error"].is_null(), "{refused:#}");
    let table = String::from_utf8(ask(&["status"]).stdout).unwrap();
    assert!(
        table.contains("not connected")
            && table.contains("last error, ")
            && table.contains("refused"),
        "{table}"
    );
    let explained = json(&ask(&["explain", "lte", "--json", "--watch", "0"]));
    conforms("explain", &explained);
    let words = explained["paths"][0]["sentences"].to_string();
    assert!(words.contains("Not connected. Last error, "), "{words}");
    // Somebody answers there, and then nobody who is the server: TLS says what is wrong.
    let stranger = std::net::TcpListener::bind(("127.0.0.1", port)).unwrap();
    std::thread::spawn(move || {
        for mut connection in stranger.incoming().flatten() {
            let _ = connection.write_all(b"SSH-2.0-OpenSSH_9.2\r\n");
        }
    });
    until("another error", status, |status| {
        path(status, "lte")["last_error"]["reason"]
            .as_str()
            .is_some_and(|reason| !reason.contains("refused"))
    });
}
