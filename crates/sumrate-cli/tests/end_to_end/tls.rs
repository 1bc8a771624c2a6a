//! What strangers and impostors meet, seen by another TLS implementation: OpenSSL's `s_client` and
//! `s_server`.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::str::FromStr;
use std::time::{Duration, Instant};

use fbdt::{ClientConfig, ConnectError, Link, PathSpec, connect};

use crate::harness::{PATIENCE, Server, run};

/// Runs `openssl s_client` against a server; what it printed, and whether it ended well. It sends
/// `input` and stays until the server closes.
fn s_client(server: &Server, options: &[&str], input: &[u8]) -> (Vec<u8>, String, bool) {
    let mut child = Command::new("openssl")
        .args(["s_client", "-connect", &server.listen(), "-ign_eof", "-nocommands"])
        .args(options)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("openssl is needed for this test: install it");
    let mut stdin = child.stdin.take().unwrap();
    let _ = stdin.write_all(input);
    let output = child.wait_with_output().unwrap();
    drop(stdin);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    (output.stdout, said, output.status.success())
}

const RIGHT: [&str; 3] = ["-tls1_3", "-alpn", "fbdt/1"];

/// Handshake and report; the server hangs up at the first byte, which is no request.
fn report(server: &Server, options: &[&str]) -> (String, String) {
    let (shown, said, _) = s_client(server, options, b"?");
    (String::from_utf8_lossy(&shown).into_owned(), said)
}

#[test]
fn nothing_below_tls_1_3_is_spoken() {
    let server = Server::start(&[]);
    for old in ["-tls1", "-tls1_1", "-tls1_2"] {
        let (shown, said) =
            report(&server, &[old, "-cipher", "DEFAULT@SECLEVEL=0", "-alpn", "fbdt/1"]);
        // The oldest lack what the server looks for before it looks at the version.
        let alerts = ["alert protocol version", "alert handshake failure"];
        let alert = alerts.iter().position(|alert| said.contains(alert));
        assert!(if old == "-tls1_2" { alert == Some(0) } else { alert.is_some() }, "{old}: {said}");
        assert!(shown.contains("Cipher is (NONE)"), "{old}: {shown}");
    }
    let (shown, said) = report(&server, &RIGHT);
    assert!(shown.contains("New, TLSv1.3, Cipher is TLS_AES_"), "{shown}{said}");
    assert!(shown.contains("ALPN protocol: fbdt/1"), "{shown}");
    assert!(shown.contains("Compression: NONE"), "{shown}");
}

#[test]
fn only_sound_ciphers_and_groups_are_accepted() {
    let server = Server::start(&[]);
    let with =
        |option: &str, value: &str| report(&server, &[&RIGHT[..], &[option, value]].concat());
    for good in ["TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256"]
    {
        let (shown, _) = with("-ciphersuites", good);
        assert!(shown.contains(&format!("Cipher is {good}")), "{shown}");
    }
    for bad in ["TLS_AES_128_CCM_SHA256", "TLS_AES_128_CCM_8_SHA256"] {
        let (shown, said) = with("-ciphersuites", bad);
        assert!(said.contains("alert handshake failure"), "{bad}: {said}");
        assert!(shown.contains("Cipher is (NONE)"), "{bad}: {shown}");
    }
    let (shown, said) = with("-groups", "ffdhe2048");
    assert!(said.contains("alert handshake failure"), "{said}");
    assert!(shown.contains("Cipher is (NONE)"), "{shown}");
}

#[test]
fn early_data_is_not_taken_and_tickets_resume() {
    let server = Server::start(&[]);
    let session = server.runtime().join("session");
    let early = server.runtime().join("early");
    std::fs::write(&early, "early").unwrap();
    let (session, early) = (session.to_str().unwrap(), early.to_str().unwrap());
    let (shown, said) = report(&server, &[&RIGHT[..], &["-sess_out", session]].concat());
    assert!(shown.contains("Max Early Data: 0"), "{shown}{said}");
    let again = ["-sess_in", session, "-early_data", early];
    let (shown, said) = report(&server, &[&RIGHT[..], &again].concat());
    assert!(shown.contains("Reused, TLSv1.3"), "{shown}{said}");
    assert!(!shown.contains("Early data was accepted"), "{shown}");
}

#[test]
fn another_application_protocol_or_none_leads_nowhere() {
    let server = Server::start(&[]);
    let (shown, said) = report(&server, &["-tls1_3", "-alpn", "h2,http/1.1"]);
    assert!(said.contains("alert no application protocol"), "{said}{shown}");
    let hello = hello(&[0; 8], &[0; 32]);
    let (answer, said, _) = s_client(&server, &["-tls1_3", "-quiet"], &hello);
    assert_eq!(answer, b"", "{said}");
}

/// A Hello for version 1 with this credential id and proof.
fn hello(credential: &[u8], proof: &[u8]) -> Vec<u8> {
    let mut limits = Vec::new();
    limits.extend(65_536_u32.to_be_bytes());
    limits.extend((1_u64 << 20).to_be_bytes());
    limits.extend((1_u64 << 24).to_be_bytes());
    limits.extend(16_u32.to_be_bytes());
    let body = [&[0, 1], credential, &[0], &limits, proof].concat();
    [&[0x41, 0, body.len() as u8], &body[..]].concat()
}

/// What the client of TLS gets as application data after it sent this.
fn answer(server: &Server, request: &[u8]) -> Vec<u8> {
    s_client(server, &[&RIGHT[..], &["-quiet"]].concat(), request).0
}

#[test]
fn a_stranger_gets_nothing_and_a_wrong_proof_one_refusal_in_the_same_words() {
    let server = Server::start(&["--allow", "127.0.0.0/8"]);
    let open_stream = [&[1, 0, 0, 19, 0, 0, 0, 0][..], &[0; 8], &[1, 5, 0, 0, 0, 1, 1]].concat();
    let ping = [&[5, 0, 0, 8][..], &[7; 8]].concat();
    let welcome = [&[0x43, 0, 72][..], &[0; 72]].concat();
    for request in [&b"GET / HTTP/1.1\r\n\r\n"[..], &open_stream, &ping, &welcome, &[0xff; 9000]] {
        let got = answer(&server, request);
        assert_eq!(got, b"", "{:?}", &request[..4]);
    }
    let link = Link::from_str(&server.link()).unwrap();
    let known = link.credential_id().0;
    let join = [&[0x42, 0, 49][..], &[3; 49]].concat();
    let refusals = [
        answer(&server, &hello(&known, &[0; 32])),
        answer(&server, &hello(&[9; 8], &[0; 32])),
        answer(&server, &join),
    ];
    let reason = b"unknown credential or session, or wrong proof";
    let expected = [&[0x44, 0, reason.len() as u8 + 1, 2][..], reason].concat();
    assert_eq!(refusals, [expected.clone(), expected.clone(), expected]);
}

/// What `s_server` prints when a handshake is complete.
const ESTABLISHED: &str = "BEGIN SSL SESSION PARAMETERS";

/// `openssl s_server` with a key of its own.
struct Impostor {
    child: Child,
    address: String,
    errors: PathBuf,
}

impl Drop for Impostor {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Impostor {
    fn start(directory: &Path, options: &[&str]) -> Self {
        let (key, certificate) = (directory.join("key.pem"), directory.join("cert.pem"));
        let made = Command::new("openssl")
            .args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"])
            .args(["-nodes", "-days", "1", "-subj", "/CN=fbdt.invalid", "-keyout"])
            .arg(&key)
            .arg("-out")
            .arg(&certificate)
            .output()
            .unwrap();
        assert!(made.status.success(), "{made:?}");
        let mut child = Command::new("openssl")
            .args(["s_server", "-accept", "127.0.0.1:0", "-alpn", "fbdt/1", "-key"])
            .arg(&key)
            .arg("-cert")
            .arg(&certificate)
            .args(options)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(File::create(directory.join("errors")).unwrap())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.as_mut().unwrap());
        let address = loop {
            let mut line = String::new();
            assert!(lines.read_line(&mut line).unwrap() > 0, "it names no port");
            if let Some(address) = line.trim().strip_prefix("ACCEPT ") {
                break address.to_owned();
            }
        };
        Self { child, address, errors: directory.join("errors") }
    }

    /// Lets a client with the real server's link come here; why it does not connect, and what the
    /// impostor saw.
    fn lure(mut self, link: &str) -> (ConnectError, String) {
        let real = link.split("//").nth(1).unwrap().split('?').next().unwrap();
        let mut config = ClientConfig::new(link.replace(real, &self.address).parse().unwrap());
        config.paths = vec![PathSpec { name: "any".to_owned(), ..PathSpec::default() }];
        config.connect_timeout = Duration::from_secs(2);
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let error = runtime.block_on(connect(config)).unwrap_err();
        // It learns of the client's end a moment after the client does.
        let begun = Instant::now();
        while !std::fs::read_to_string(&self.errors).unwrap().contains("ERROR") {
            assert!(begun.elapsed() < PATIENCE, "the impostor saw no handshake fail");
            std::thread::yield_now();
        }
        let _ = self.child.kill();
        let mut seen = String::new();
        let mut stdout = self.child.stdout.take().unwrap();
        stdout.read_to_string(&mut seen).unwrap();
        (error, seen + &std::fs::read_to_string(&self.errors).unwrap())
    }
}

#[test]
fn an_impostor_would_be_seen_to_succeed() {
    let directory = tempfile::tempdir().unwrap();
    let mut impostor = Impostor::start(directory.path(), &["-tls1_3"]);
    let mut client = Command::new("openssl")
        .args(["s_client", "-tls1_3", "-connect", &impostor.address])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let lines = BufReader::new(impostor.child.stdout.as_mut().unwrap()).lines();
    assert!(lines.map_while(Result::ok).any(|line| line.contains(ESTABLISHED)));
    drop(client.stdin.take());
    let _ = client.wait();
}

#[test]
fn a_client_tells_an_impostor_nothing() {
    let server = Server::start(&[]);
    let credential = Link::from_str(&server.link()).unwrap().credential_id();
    let (error, seen) = Impostor::start(server.runtime(), &["-tls1_3"]).lure(&server.link());
    assert!(matches!(error, ConnectError::WrongKey { .. }), "{error}");
    // The client hangs up before the handshake is over; what it would send is a Hello.
    assert!(seen.contains("ERROR") && !seen.contains(ESTABLISHED), "{seen}");
    let id = credential.0;
    assert!(!seen.as_bytes().windows(id.len()).any(|part| part == id), "{seen}");
}

#[test]
fn a_client_speaks_nothing_below_tls_1_3() {
    let server = Server::start(&[]);
    let (error, seen) = Impostor::start(server.runtime(), &["-tls1_2"]).lure(&server.link());
    assert!(matches!(error, ConnectError::NoPath { .. }), "{error}");
    assert!(error.to_string().contains("TLS"), "{error}");
    assert!(seen.contains("ERROR") && !seen.contains(ESTABLISHED), "{seen}");
}

#[test]
fn the_pin_is_the_hash_of_the_servers_public_key() {
    let server = Server::start(&[]);
    let key = server.runtime().join("state/server.key");
    let spki = Command::new("openssl")
        .args(["pkey", "-inform", "DER", "-pubout", "-outform", "DER", "-in"])
        .arg(key)
        .output()
        .unwrap();
    let mut digest = Command::new("openssl")
        .args(["dgst", "-sha256", "-r"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    digest.stdin.take().unwrap().write_all(&spki.stdout).unwrap();
    let digest = digest.wait_with_output().unwrap();
    let pinned = Link::from_str(&server.link()).unwrap().fingerprint().unwrap().to_string();
    assert_eq!(String::from_utf8_lossy(&digest.stdout).split(' ').next(), Some(pinned.as_str()));
    assert!(run(server.runtime(), &["bench", &server.link(), "--bytes", "1Ki"]).status.success());
}
