//! Secrets appear where they are asked for and nowhere else: everything that the program prints at
//! the finest level of logging, serves over HTTP, writes into its event log and says on its way down is
//! searched for them.

use std::fs::File;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use nix::sys::signal::Signal;

use crate::config_file::config;
use crate::harness::{Client, Daemon, Server, curl, run, stderr, sumrate};
use crate::policies::until;
use crate::web;

/// How a secret may be written down. Whoever logs bytes does it in one of these ways.
fn encodings(secret: &[u8]) -> Vec<(&'static str, Vec<u8>)> {
    let list = |each: fn(&u8) -> String, between: &str| {
        secret.iter().map(each).collect::<Vec<_>>().join(between).into_bytes()
    };
    let mut found = vec![
        ("raw", secret.to_vec()),
        ("hexadecimal", list(|byte| format!("{byte:02x}"), "")),
        ("HEXADECIMAL", list(|byte| format!("{byte:02X}"), "")),
        ("hexadecimal list", list(|byte| format!("{byte:02x}"), ":")),
        ("Debug list", list(|byte| byte.to_string(), ", ")),
        ("Debug list, hexadecimal", list(|byte| format!("{byte:#04x}"), ", ")),
        ("JSON list", list(|byte| byte.to_string(), ",")),
        ("escaped", secret.escape_ascii().to_string().into_bytes()),
    ];
    // Behind other bytes, Base64 has three forms; the first and last characters are theirs, too.
    for shift in 0..3 {
        let shifted = [&[0; 3][..shift], secret].concat();
        for text in [STANDARD.encode(&shifted), URL_SAFE_NO_PAD.encode(&shifted)] {
            let text = text.trim_end_matches('=');
            found.push(("Base64", text.as_bytes()[shift + 1..text.len() - 1].to_vec()));
        }
    }
    found
}

/// Length of the part of an encoded secret that must not appear.
const RUN: usize = 16;

/// The parts of secrets that must not appear, in any encoding, by their first two bytes.
struct Search(Vec<Vec<(String, Vec<u8>)>>);

impl Search {
    fn new<'a>(secrets: impl IntoIterator<Item = (&'a str, &'a [u8])>) -> Self {
        let mut parts = vec![Vec::new(); 1 << 16];
        for (name, secret) in secrets {
            for (encoding, needle) in encodings(secret) {
                for part in needle.windows(RUN.min(needle.len())) {
                    let place: &mut Vec<_> = &mut parts[Self::place(part)];
                    place.push((format!("{name}, {encoding}"), part.to_vec()));
                }
            }
        }
        Self(parts)
    }

    fn place(part: &[u8]) -> usize {
        usize::from(u16::from_be_bytes([part[0], part[1]]))
    }

    /// What a text holds of a secret; a part is enough.
    fn leak(&self, text: &[u8]) -> Option<&str> {
        let mut rest = text;
        while rest.len() >= 2 {
            let found = self.0[Self::place(rest)].iter().find(|(_, part)| rest.starts_with(part));
            if let Some((name, _)) = found {
                return Some(name);
            }
            rest = &rest[1..];
        }
        None
    }
}

#[test]
fn a_planted_secret_is_found_in_every_encoding() {
    let secret: Vec<u8> = (0..32_u8).map(|at| at.wrapping_mul(47) ^ 0x91).collect();
    for (name, needle) in encodings(&secret) {
        let text = [b"DEBUG it is ".as_slice(), &needle[2..], b" I think\n"].concat();
        let search = Search::new([("it", secret.as_slice())]);
        assert!(search.leak(&text).is_some(), "{name}");
        assert!(search.leak(&text[..text.len() - 10]).is_some(), "{name}, cut short");
    }
    let search = Search::new([("it", secret.as_slice())]);
    assert_eq!(search.leak(b"DEBUG nothing of the kind"), None);
}

/// Places of output, by name.
struct Outputs(Vec<(String, Vec<u8>)>);

impl Outputs {
    fn add(&mut self, name: &str, bytes: impl Into<Vec<u8>>) {
        self.0.push((name.to_owned(), bytes.into()));
    }

    fn run(&mut self, server: &Server, arguments: &[&str]) {
        let mut command = sumrate(server.runtime());
        command.env("SUMRATE_LOG", "trace").env("RUST_BACKTRACE", "full").args(arguments);
        let output = command.output().unwrap();
        self.add(&format!("{arguments:?} stdout"), output.stdout);
        self.add(&format!("{arguments:?} stderr"), output.stderr);
    }

    fn fetch(&mut self, name: &str, arguments: &[&str]) {
        let output = curl(&[&["--include"], arguments].concat());
        assert!(output.status.success(), "{name}: {}", stderr(&output));
        self.add(name, output.stdout);
    }
}

/// The command, with everything it logs in a file.
fn traced(server: &Path, arguments: &[&str], log: &Path) -> Daemon {
    let mut command = sumrate(server);
    command.env("SUMRATE_LOG", "trace").env("RUST_BACKTRACE", "full").args(arguments);
    Daemon::start_with_log(command, File::create(log).unwrap().into())
}

const PASSWORD: &str = "correct horse battery staple";

struct Traced {
    server: Server,
    client: Client,
    logs: [PathBuf; 2],
    event_logs: [PathBuf; 2],
}

/// Everything that can be watched, on free ports.
const WATCHED: [&str; 6] = ["--metrics", "0", "--web", "0", "--event-interval", "0.01"];

/// The client's flags come from a file, link and password among them, as a service's may.
fn settings(server: &Server, password: &str) -> PathBuf {
    let text = format!(
        "[up]\nlink = \"{}\"\nsocks-auth = \"{password}\"\npath = [\"a=127.0.0.1\", \"b=127.0.0.2\"]\n",
        server.link()
    );
    config(server, &text)
}

fn start() -> Traced {
    let directory = tempfile::tempdir().unwrap();
    let place = |name: &str| directory.path().join(name);
    let logs = [place("serve.log"), place("up.log")];
    let event_logs = [place("serve.events"), place("up.events")];
    let events = event_logs.each_ref().map(|path| ["--event-log", path.to_str().unwrap()]);
    let state = place("state");
    let serve = ["serve", "--json", "--listen", "127.0.0.1:0", "--allow", "127.0.0.0/8", "--state"];
    let serve = [&serve[..], &[state.to_str().unwrap()], &WATCHED, &events[0]].concat();
    let daemon = traced(directory.path(), &serve, &logs[0]);
    let server = Server { daemon, directory };
    let link = server.runtime().join("link");
    sumrate_cli::output::write_private(&link, &server.link()).unwrap();
    let settings = settings(&server, &format!("me:{PASSWORD}"));
    let up = ["up", "--json", "--socks", "127.0.0.1:0", "--http", "127.0.0.1:0", "--config"];
    let up = [&up[..], &[settings.to_str().unwrap()], &WATCHED, &events[1]].concat();
    let client = Client { daemon: traced(server.runtime(), &up, &logs[1]) };
    Traced { server, client, logs, event_logs }
}

/// What a browser, a stranger's browser and Prometheus are sent.
fn serve(daemon: &Daemon, outputs: &mut Outputs) {
    let (page, token) = page_of(daemon);
    let metrics = daemon.first["metrics"].as_str().unwrap();
    let with_token = format!("Authorization: Bearer {token}");
    let api = format!("{page}api/status");
    outputs.fetch(metrics, &[metrics]);
    for file in ["", "page.js", "page.css", "nothing"] {
        outputs.fetch(file, &[&format!("{page}{file}")]);
    }
    for (name, header) in [("with", with_token.as_str()), ("without", "X-Nothing: 1")] {
        outputs.fetch(&format!("{api} {name} its token"), &["--header", header, &api]);
    }
    outputs.fetch("another host", &["--header", "Host: example.org", &page]);
}

/// The page's address and its token.
fn page_of(daemon: &Daemon) -> (String, String) {
    let address = daemon.first["web"].as_str().unwrap();
    let (page, token) = address.split_once("#token=").unwrap();
    (page.to_owned(), token.to_owned())
}

/// A password that somebody mangled, on the command line and in the file of a running client.
fn mangle_password(traced: &Traced, outputs: &mut Outputs) {
    let (server, socket) = (&traced.server, traced.client.status_socket());
    let socket = socket.to_str().unwrap();
    let link = format!("@{}", server.runtime().join("link").display());
    for wrong in [PASSWORD.to_owned(), format!(":{PASSWORD}"), format!("{PASSWORD}:")] {
        outputs.run(server, &["up", &link, "--json", "--socks-auth", &wrong]);
        outputs.run(server, &["run", "--socks-auth", &wrong, "true"]);
        let file = settings(server, &wrong);
        outputs.run(server, &["config", "check", file.to_str().unwrap()]);
        outputs.run(server, &["up", "--json", "--config", file.to_str().unwrap()]);
        outputs.run(server, &["reload", "--json", "--socket", socket]);
    }
    outputs.run(server, &["status", "--json", "--socket", socket]);
    let last = String::from_utf8_lossy(&outputs.0[outputs.0.len() - 2].1).into_owned();
    assert!(last.contains("socks-auth"), "the reload's error is in the status: {last}");
}

/// Everything that makes the program speak: traffic, strangers, wrong passwords and links, questions.
fn provoke(traced: &Traced, outputs: &mut Outputs) {
    let Traced { server, client, .. } = traced;
    let web = web::start("127.0.0.1");
    let url = format!("http://{web}/300000");
    for user in [format!("me:{PASSWORD}"), "me:wrong".to_owned()] {
        let arguments = ["--proxy-user", &user, &url];
        let reached = [client.curl_socks(&arguments), client.curl_http(&arguments)];
        assert_eq!(reached.map(|output| output.status.success()), [user.contains("horse"); 2]);
    }
    let link = server.link();
    let place = |name: &str| server.runtime().join(name).to_str().unwrap().to_owned();
    let (state, file) = (place("state"), format!("@{}", place("link")));
    outputs.run(server, &["bench", &file, "--bytes", "1Mi", "--json"]);
    // A link that somebody mangled, or put into the wrong place.
    for wrong in [
        link.replace("c=", "c=AAAA"),
        link.replace('#', "%23"),
        link.replace(['?', '#'], ""),
        link.replace("k=", "k=AAAA"),
        link.replace("sumrate:", "http:"),
        link.clone() + "x",
    ] {
        outputs.run(server, &["bench", &wrong, "--bytes", "1Ki", "--json"]);
        outputs.run(server, &["up", &format!("@{wrong}"), "--json"]);
    }
    outputs.run(server, &["up", &link, "--socks", &link]);
    outputs.run(server, &["up", &file, "--path", &link]);
    outputs.run(server, &["status", "--socket", &link]);
    outputs.run(server, &["credential", "revoke", &link, "--state", &state, "--json"]);
    let there = server.daemon.first["status_socket"].as_str().unwrap();
    for socket in [client.status_socket().to_str().unwrap(), there] {
        outputs.run(server, &["status", "--socket", socket]);
        outputs.run(server, &["status", "--json", "--socket", socket]);
    }
    for daemon in [&server.daemon, &client.daemon] {
        serve(daemon, outputs);
    }
    let asked = client.status_socket();
    for words in [&["explain"][..], &["path", "list"], &["path", "set", "a", "--weight", "2"]] {
        outputs.run(server, &[words, &["--socket", asked.to_str().unwrap()]].concat());
    }
    outputs.run(server, &["doctor", &file]);
    outputs.run(server, &["cp", &format!("{link}:nowhere/a"), &format!("{file}:b"), &state]);
    outputs.run(server, &["cp", &format!("{link}:nowhere/a"), &place("copied")]);
    mangle_password(traced, outputs);
    outputs.run(server, &["credential", "list", "--state", &state]);
    outputs.run(server, &["credential", "list", "--state", &state, "--json"]);
}

/// The secrets themselves, from where they are kept.
fn secrets(server: &Server) -> Vec<(&'static str, Vec<u8>)> {
    let link = server.link();
    let credential = URL_SAFE_NO_PAD.decode(link.split("&c=").nth(1).unwrap()).unwrap();
    // PKCS#8 of P-256: 36 bytes that are everybody's, the private number, the public point.
    let key = std::fs::read(server.runtime().join("state/server.key")).unwrap();
    assert_eq!(key[34..36], [4, 32], "an octet string of 32 bytes");
    vec![
        ("the credential's secret", credential[8..].to_vec()),
        ("the server's private key", key[36..68].to_vec()),
        ("the proxy's password", PASSWORD.as_bytes().to_vec()),
        ("the proxy's user and password", format!("me:{PASSWORD}").into_bytes()),
    ]
}

#[test]
fn nothing_that_is_printed_holds_a_secret() {
    let mut traced = start();
    let mut outputs = Outputs(Vec::new());
    provoke(&traced, &mut outputs);
    let mut secrets = secrets(&traced.server);
    for daemon in [&traced.server.daemon, &traced.client.daemon] {
        secrets.push(("the token of the status page", page_of(daemon).1.into_bytes()));
    }
    for path in &traced.event_logs {
        let read = || std::fs::read_to_string(path).unwrap_or_default();
        until("an event log", || read().into(), |text| text.as_str().unwrap().contains("session"));
    }
    // One end crashes, the other is told to stop.
    traced.client.daemon.signal(Signal::SIGABRT);
    traced.client.daemon.wait();
    traced.server.daemon.signal(Signal::SIGTERM);
    traced.server.daemon.wait();
    for log in &traced.logs {
        let text = std::fs::read(log).unwrap();
        let shown = String::from_utf8_lossy(&text);
        for level in ["TRACE", "DEBUG"] {
            assert!(shown.contains(level), "{} has no {level}", log.display());
        }
        assert!(shown.contains("rustls"), "{} has nothing of TLS", log.display());
        outputs.add(&log.display().to_string(), text);
    }
    // The first event of `serve` has the link: there it is asked for.
    outputs.add("events of serve", traced.server.daemon.rest());
    let mut ready = traced.client.daemon.first.clone();
    ready["web"].take();
    outputs.add("first event of up", ready.to_string());
    for path in &traced.event_logs {
        outputs.add(&path.display().to_string(), std::fs::read(path).unwrap());
    }
    outputs.add("events of up", traced.client.daemon.rest());
    let search = Search::new(secrets.iter().map(|(name, secret)| (*name, secret.as_slice())));
    for (place, text) in &outputs.0 {
        let found = search.leak(text);
        assert_eq!(found, None, "in {place}: {}", String::from_utf8_lossy(text));
    }
    assert!(search.leak(traced.server.link().as_bytes()).is_some(), "the search finds it");
}

#[test]
fn a_damaged_credential_is_reported_without_its_secret() {
    let server = Server::start(&[]);
    let state = server.runtime().join("state");
    let entry = std::fs::read_dir(state.join("credentials")).unwrap().next().unwrap().unwrap();
    let whole = std::fs::read_to_string(entry.path()).unwrap();
    let (name, secret) = secrets(&server).remove(0);
    let search = Search::new([(name, secret.as_slice())]);
    for damaged in [
        whole.replace("\"name\"", "\"nmae\""),
        whole.replace("\"secret\": \"", "\"secret\": \"x"),
        whole.replace("\"secret\": \"", "\"secret\": {\"x\": \""),
        whole.replace("\"id\": \"", "\"id\": \"0"),
        whole.replace("\"secret\"", "\"created\""),
        whole.replace(['{', '}'], ""),
        whole.replace("\"version\": 1", "\"version\": 7"),
    ] {
        sumrate_cli::output::write_private(&entry.path(), &damaged).unwrap();
        let state = state.to_str().unwrap();
        let output = run(server.runtime(), &["credential", "list", "--json", "--state", state]);
        assert_eq!(output.status.code(), Some(2), "{damaged}: {}", stderr(&output));
        for text in [&output.stdout, &output.stderr] {
            assert_eq!(search.leak(text), None, "{}", String::from_utf8_lossy(text));
        }
    }
}
