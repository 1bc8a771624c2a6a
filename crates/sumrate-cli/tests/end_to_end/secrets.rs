//! Secrets appear where they are asked for and nowhere else: everything that the program prints at
//! the finest level of logging, and on its way down, is searched for them.

use std::fs::File;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use nix::sys::signal::Signal;

use crate::harness::{Client, Daemon, Server, run, stderr, sumrate};
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

/// What a text holds of a secret, in any encoding; a part is enough.
fn leak(text: &[u8], secret: &[u8]) -> Option<&'static str> {
    encodings(secret)
        .into_iter()
        .find(|(_, needle)| {
            let run = RUN.min(needle.len());
            needle.windows(run).any(|part| {
                let first = part[0];
                text.windows(run).any(|at| at[0] == first && at == part)
            })
        })
        .map(|(name, _)| name)
}

#[test]
fn a_planted_secret_is_found_in_every_encoding() {
    let secret: Vec<u8> = (0..32_u8).map(|at| at.wrapping_mul(47) ^ 0x91).collect();
    for (name, needle) in encodings(&secret) {
        let text = [b"DEBUG it is ".as_slice(), &needle[2..], b" I think\n"].concat();
        assert!(leak(&text, &secret).is_some(), "{name}");
    }
    assert_eq!(leak(b"DEBUG nothing of the kind", &secret), None);
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
}

fn start() -> Traced {
    let directory = tempfile::tempdir().unwrap();
    let place = |name: &str| directory.path().join(name);
    let logs = [place("serve.log"), place("up.log")];
    let state = place("state");
    let serve = ["serve", "--json", "--listen", "127.0.0.1:0", "--allow", "127.0.0.0/8", "--state"];
    let daemon =
        traced(directory.path(), &[&serve[..], &[state.to_str().unwrap()]].concat(), &logs[0]);
    let server = Server { daemon, directory };
    let link = server.runtime().join("link");
    sumrate_cli::output::write_private(&link, &server.link()).unwrap();
    let link = format!("@{}", link.display());
    let password = format!("me:{PASSWORD}");
    let up = ["up", &link, "--json", "--socks", "127.0.0.1:0", "--http", "127.0.0.1:0"];
    let paths = ["--path", "a=127.0.0.1", "--path", "b=127.0.0.2", "--socks-auth", &password];
    let client = Client { daemon: traced(server.runtime(), &[&up[..], &paths].concat(), &logs[1]) };
    Traced { server, client, logs }
}

/// Everything that makes the program speak: traffic, strangers, wrong passwords and links, questions.
fn provoke(Traced { server, client, .. }: &Traced, outputs: &mut Outputs) {
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
    outputs.run(server, &["bench", &file, "--bytes", "1M", "--json"]);
    // A link that somebody mangled, or put into the wrong place.
    for wrong in [
        link.replace("c=", "c=AAAA"),
        link.replace('#', "%23"),
        link.replace(['?', '#'], ""),
        link.replace("k=", "k=AAAA"),
        link.replace("sumrate:", "http:"),
        link.clone() + "x",
    ] {
        outputs.run(server, &["bench", &wrong, "--bytes", "1K", "--json"]);
        outputs.run(server, &["up", &format!("@{wrong}"), "--json"]);
    }
    outputs.run(server, &["up", &link, &link]);
    outputs.run(server, &["up", &file, "--path", &link]);
    outputs.run(server, &["status", "--socket", &link]);
    outputs.run(server, &["credential", "revoke", &link, "--state", &state, "--json"]);
    let there = server.daemon.first["status_socket"].as_str().unwrap();
    for socket in [client.status_socket().to_str().unwrap(), there] {
        outputs.run(server, &["status", "--socket", socket]);
        outputs.run(server, &["status", "--json", "--socket", socket]);
    }
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
    let secrets = secrets(&traced.server);
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
    outputs.add("first event of up", traced.client.daemon.first.to_string());
    outputs.add("events of up", traced.client.daemon.rest());
    for (place, text) in &outputs.0 {
        for (name, secret) in &secrets {
            let found = leak(text, secret);
            assert_eq!(found, None, "{name} in {place}: {}", String::from_utf8_lossy(text));
        }
    }
    assert!(leak(traced.server.link().as_bytes(), &secrets[0].1).is_some(), "the search finds it");
}

#[test]
fn a_damaged_credential_is_reported_without_its_secret() {
    let server = Server::start(&[]);
    let state = server.runtime().join("state");
    let entry = std::fs::read_dir(state.join("credentials")).unwrap().next().unwrap().unwrap();
    let whole = std::fs::read_to_string(entry.path()).unwrap();
    let secret = secrets(&server).remove(0).1;
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
            assert_eq!(leak(text, &secret), None, "{}", String::from_utf8_lossy(text));
        }
    }
}
