//! The status page's address, which is a password, where the service manager keeps what is printed.

use std::fs::File;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use nix::sys::signal::Signal;

use crate::harness::{Client, Daemon, Server, curl, json, run, stderr, sumrate};

/// Starts a command as the service manager does; what it logs is in the file.
fn service(runtime: &Path, arguments: &[&str]) -> (Daemon, PathBuf) {
    let log = runtime.join(format!("{}.log", arguments[0]));
    let mut command = sumrate(runtime);
    command.env("NOTIFY_SOCKET", runtime.join("manager")).args(arguments);
    command.args(["--json", "--web", "0"]);
    (Daemon::start_with_log(command, File::create(&log).unwrap().into()), log)
}

/// The address is in its file alone, leads to the page, and goes with the service.
fn keeps_its_address((mut daemon, log): (Daemon, PathBuf)) {
    assert!(daemon.first["web"].is_null(), "{}", daemon.first);
    let socket = Path::new(daemon.first["status_socket"].as_str().unwrap());
    let place = socket.with_extension("web-url");
    assert_eq!(std::fs::metadata(&place).unwrap().permissions().mode() & 0o777, 0o600);
    let address = std::fs::read_to_string(&place).unwrap();
    let (page, token) = address.trim().split_once("#token=").unwrap();
    let fetched = curl(&["--fail", page]);
    assert!(fetched.status.success(), "{}", stderr(&fetched));
    daemon.signal(Signal::SIGTERM);
    assert!(daemon.wait().success());
    assert!(!place.exists(), "the address outlives the page");
    let said = std::fs::read_to_string(&log).unwrap();
    assert!(said.contains(place.to_str().unwrap()), "{said}");
    assert!(!said.contains(token), "{said}");
    assert!(!daemon.rest().contains(token));
}

#[test]
fn a_service_writes_the_address_of_its_page_into_a_file_and_no_journal() {
    let directory = tempfile::tempdir().unwrap();
    let place = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    let listen = ["serve", "--listen", "127.0.0.1:0", "--state"];
    let link = ["--link-file", &place("link")];
    let server =
        service(directory.path(), &[&listen[..], &[place("state").as_str()], &link].concat());
    let up = ["up", &format!("@{}", place("link")), "--path", "lo=127.0.0.1"];
    let socks = ["--socks", "127.0.0.1:0"];
    keeps_its_address(service(directory.path(), &[&up[..], &socks].concat()));
    keeps_its_address(server);
}

#[test]
fn a_person_is_told_the_address() {
    let server = Server::start(&["--web", "0"]);
    let address = server.daemon.first["web"].as_str().unwrap();
    assert!(address.contains("/#token="), "{address}");
}

/// A request for a change as the page of `address` sends it, with other headers or without some.
struct Change<'a> {
    address: &'a str,
    token: &'a str,
    origin: &'a str,
    kind: &'a str,
    site: &'a str,
    body: &'a str,
}

const PAUSE: &str = r#"{"schema":"sumrate.control.v1","path":"b","set":{"paused":true}}"#;

impl<'a> Change<'a> {
    /// What the page itself sends to pause the path `b`. `url` is the page's.
    fn of(url: &'a str) -> Self {
        let (origin, token) = url.split_once("/#token=").unwrap();
        let address = origin.strip_prefix("http://").unwrap();
        let (kind, site) = ("application/json", "same-origin");
        Self { address, token, origin, kind, site, body: PAUSE }
    }

    /// Status and body of the answer.
    fn send(&self) -> (u16, String) {
        let output = curl(&[
            "--write-out",
            "\n%{http_code}",
            "--header",
            &format!("Authorization: Bearer {}", self.token),
            "--header",
            &format!("Origin: {}", self.origin),
            "--header",
            &format!("Content-Type: {}", self.kind),
            "--header",
            &format!("Sec-Fetch-Site: {}", self.site),
            "--data",
            self.body,
            &format!("http://{}/api/path", self.address),
        ]);
        let said = String::from_utf8(output.stdout).unwrap();
        let (body, status) = said.rsplit_once('\n').unwrap();
        (status.parse().unwrap(), body.to_owned())
    }
}

/// Why the path `b` of a client sends nothing.
fn why(server: &Server, client: &Client) -> String {
    let socket = client.status_socket();
    let arguments = ["path", "list", "--json", "--socket", socket.to_str().unwrap()];
    let report = json(&run(server.runtime(), &arguments));
    let paths = report["paths"].as_array().unwrap();
    let path = paths.iter().find(|path| path["name"] == "b").unwrap();
    path["why"].as_str().unwrap().to_owned()
}

const PATHS: [&str; 4] = ["--path", "a=127.0.0.1", "--path", "b=127.0.0.2"];

#[test]
fn changes_are_taken_from_the_page_and_its_owner_alone() {
    let server = Server::start(&["--web", "0"]);
    let client = server.client(&[&PATHS[..], &["--web", "0"]].concat());
    let url = client.daemon.first["web"].as_str().unwrap();
    let page = || Change::of(url);
    let long = format!("{PAUSE}{}", " ".repeat(5000));
    let refused = [
        (401, Change { token: "wrong", ..page() }),
        (403, Change { origin: "http://evil.example", ..page() }),
        (403, Change { origin: "null", ..page() }),
        (403, Change { site: "cross-site", ..page() }),
        (415, Change { kind: "text/plain", ..page() }),
        (413, Change { body: &long, ..page() }),
        (400, Change { body: "{}", ..page() }),
    ];
    for (status, change) in refused {
        assert_eq!(change.send().0, status, "{} {} {}", change.origin, change.kind, change.body);
        assert_ne!(why(&server, &client), "paused");
    }
    let (status, answer) = page().send();
    assert_eq!(status, 200, "{answer}");
    crate::schemas::conforms("control", &serde_json::from_str(&answer).unwrap());
    assert_eq!(why(&server, &client), "paused");
    let unknown = PAUSE.replace("\"b\"", "\"x\"");
    let (status, answer) = Change { body: &unknown, ..page() }.send();
    assert!(status == 200 && answer.contains("there is no path x"), "{answer}");
    let last = PAUSE.replace("\"b\"", "\"a\"");
    let (_, answer) = Change { body: &last, ..page() }.send();
    assert!(answer.contains("no other path is in use"), "{answer}");
    let there = server.daemon.first["web"].as_str().unwrap();
    assert_eq!(Change::of(there).send().0, 403, "paths are the client's");
}

#[test]
fn a_page_that_is_open_or_read_only_changes_nothing() {
    let server = Server::start(&[]);
    for flag in ["--web-read-only", "--web-open"] {
        let client = server.client(&[&PATHS[..], &["--web", "0", flag]].concat());
        let url = client.daemon.first["web"].as_str().unwrap();
        assert_eq!(Change::of(url).send().0, 405, "{flag}");
        assert_ne!(why(&server, &client), "paused", "{flag}");
    }
}

#[test]
fn a_path_is_paused_and_resumed() {
    let server = Server::start(&[]);
    let client = server.client(&PATHS);
    let socket = client.status_socket();
    let set = |path: &str, flag: &str| {
        let socket = socket.to_str().unwrap();
        run(server.runtime(), &["path", "set", path, flag, "--json", "--socket", socket])
    };
    assert!(set("b", "--paused").status.success());
    assert_eq!(why(&server, &client), "paused");
    let refused = set("a", "--paused");
    assert_eq!(refused.status.code(), Some(2), "{}", stderr(&refused));
    assert!(stderr(&refused).contains("no other path is in use"), "{}", stderr(&refused));
    assert!(set("b", "--paused=false").status.success());
    assert_ne!(why(&server, &client), "paused");
}
