//! The real command on real packets, without root: in a user namespace of its own.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;
use sumrate_link::config::Directions;
use sumrate_link::control::client::ask;
use sumrate_link::control::protocol::Request;
use sumrate_link::netns::run_in;

const INSIDE: &str = "SUMRATE_LINK_TEST_INSIDE";
const BINARY: &str = env!("CARGO_BIN_EXE_sumrate-link");
/// Nothing here should take this long; a test that waits longer fails instead of hanging.
const PATIENCE: Duration = Duration::from_secs(30);

#[test]
fn carries_real_traffic_in_a_user_namespace() {
    let allowed = Command::new("unshare").args(["-Urnm", "true"]).output();
    if !allowed.is_ok_and(|output| output.status.success()) {
        return test_skip::skipped(
            "user namespaces are not allowed here (`unshare -Urnm true` fails)",
        );
    }
    let status = Command::new("unshare")
        .arg("-Urnm")
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "inside_the_namespace", "--ignored", "--nocapture"])
        .env(INSIDE, "1")
        .status()
        .unwrap();
    assert!(status.success(), "the test inside the namespace failed; its messages are above");
}

#[test]
#[ignore = "is run by carries_real_traffic_in_a_user_namespace, inside one"]
fn inside_the_namespace() {
    if std::env::var_os(INSIDE).is_none() {
        return test_skip::skipped("not inside the namespace");
    }
    for words in [
        "mount -t tmpfs none /run",
        "mkdir /run/netns",
        "ip netns add client",
        "ip netns add server",
    ] {
        command(words);
    }
    refuses_what_is_not_its_own();
    let mut emulator = Emulator::start(&configuration("af-packet"), 1);
    tcp_passes_both_ways(&emulator);
    delay_and_blackout_and_hold(&emulator);
    order_is_kept_unless_packets_may_overtake(&emulator);
    a_policer_drops_beyond_its_burst(&emulator);
    commands_are_checked(&emulator);
    trigger_starts_the_schedule(&emulator);
    emulator.stop();
    calibration_measures_jitter();
    let links = command("ip -br link");
    assert!(!links.contains("em-"), "interfaces are left: {links}");

    if std::fs::File::options().read(true).write(true).open("/dev/net/tun").is_ok() {
        let mut emulator = Emulator::start(&configuration("tun"), 2);
        tcp_passes_both_ways(&emulator);
        delay_and_blackout_and_hold(&emulator);
        emulator.stop();
    } else {
        test_skip::skipped("/dev/net/tun cannot be opened here");
    }
}

fn configuration(backend: &str) -> String {
    format!(
        r#"
version = 1
seed = 7
schedule_start = "trigger"
[[link]]
name = "wifi"
backend = "{backend}"
static_neighbours = true
[link.a]
netns = "client"
interface = "wifi0"
address = ["10.1.1.1/24", "fd00:1::1/64"]
[link.b]
netns = "server"
interface = "wifi0"
address = ["10.1.1.2/24", "fd00:1::2/64"]
[link.both]
rate_mbps = 500
delay_ms = 2
[[link.schedule]]
at_s = 0
direction = "b_to_a"
delay_ms = 7
"#
    )
}

/// Runs a shell-less command and returns what it printed.
fn command(words: &str) -> String {
    let mut split = words.split(' ');
    let output = Command::new(split.next().unwrap()).args(split).output().unwrap();
    assert!(output.status.success(), "{words}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

struct Emulator {
    process: Child,
    control: PathBuf,
    stats: PathBuf,
}

impl Emulator {
    fn start(configuration: &str, number: u32) -> Emulator {
        let path = |name: &str| Path::new("/run").join(format!("{number}.{name}"));
        std::fs::write(path("toml"), configuration).unwrap();
        let mut process = Command::new(BINARY)
            .arg("run")
            .arg(path("toml"))
            .arg("--control")
            .arg(path("sock"))
            .arg("--stats")
            .arg(path("json"))
            .arg("--ready")
            .arg(path("ready"))
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n");
        assert!(path("ready").exists());
        Emulator { process, control: path("sock"), stats: path("json") }
    }

    fn set(&self, parameters: Value) -> Result<Value, String> {
        let request = Request::Set {
            link: "wifi".to_owned(),
            direction: Directions::Both,
            parameters: serde_json::from_value(parameters).unwrap(),
        };
        ask(&self.control, &request).map_err(|error| error.to_string())
    }

    fn stats(&self) -> Value {
        ask(&self.control, &Request::Stats { reset: false }).unwrap()
    }

    fn counter(&self, direction: &str, name: &str) -> u64 {
        self.stats()["links"][0][direction]["counters"][name].as_u64().unwrap()
    }

    /// Asks until a counter is at least `value`.
    fn wait_for(&self, direction: &str, name: &str, value: u64) {
        let begin = Instant::now();
        while self.counter(direction, name) < value {
            assert!(
                begin.elapsed() < PATIENCE,
                "{name} stays at {}: {:#}",
                self.counter(direction, name),
                self.stats()
            );
            thread::yield_now();
        }
    }

    fn stop(&mut self) {
        command(&format!("kill -TERM {}", self.process.id()));
        assert!(self.process.wait().unwrap().success());
        let stats: Value = serde_json::from_slice(&std::fs::read(&self.stats).unwrap()).unwrap();
        conforms(&stats);
        assert!(!self.control.exists(), "the control socket is left");
    }
}

/// Fails with every difference from the schema in `docs/schemas`.
fn conforms(stats: &Value) {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/schemas/link-stats.v1.json");
    let schema: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let errors: Vec<String> = validator
        .iter_errors(stats)
        .map(|error| format!("{}: {error}", error.instance_path()))
        .collect();
    assert!(errors.is_empty(), "{errors:#?}\n{stats:#}");
}

#[test]
#[should_panic(expected = "uptime_s")]
fn a_missing_field_is_noticed() {
    conforms(&serde_json::json!({ "version": 1 }));
}

impl Drop for Emulator {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn pattern(length: usize, salt: usize) -> Vec<u8> {
    (0..length).map(|index| (index * 31 + index / 253 + salt) as u8).collect()
}

/// Bytes both ways at once, over IPv4 and IPv6, on a lossy link.
fn tcp_passes_both_ways(emulator: &Emulator) {
    emulator.set(serde_json::json!({ "loss": 0.002 })).unwrap();
    for host in ["10.1.1.2", "fd00:1::2"] {
        let address = SocketAddr::new(host.parse::<IpAddr>().unwrap(), 5000);
        let listener = run_in(Some("server"), || TcpListener::bind(address)).unwrap().unwrap();
        thread::scope(|scope| {
            let client =
                || run_in(Some("client"), || TcpStream::connect(address)).unwrap().unwrap();
            scope.spawn(move || exchange(client(), 2, 1));
            let (server, _) = listener.accept().unwrap();
            exchange(server, 1, 2);
        });
    }
    emulator.set(serde_json::json!({ "loss": 0 })).unwrap();
    for direction in ["a_to_b", "b_to_a"] {
        let counter = |name| emulator.counter(direction, name);
        assert!(counter("lost") > 0, "{:#}", emulator.stats());
        assert!(
            counter("segments_in") > 2 * counter("packets_in"),
            "no super-packets: {:#}",
            emulator.stats()
        );
        assert_eq!(counter("device_drops"), 0);
    }
}

/// Writes one pattern and expects another, at once.
fn exchange(stream: TcpStream, own: usize, other: usize) {
    const LENGTH: usize = 8 << 20;
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut writer = stream.try_clone().unwrap();
    let writing = thread::spawn(move || {
        writer.write_all(&pattern(LENGTH, own)).unwrap();
        writer.shutdown(std::net::Shutdown::Write).unwrap();
    });
    let mut received = Vec::new();
    (&stream).read_to_end(&mut received).unwrap();
    writing.join().unwrap();
    assert!(received == pattern(LENGTH, other), "{} bytes, or other ones", received.len());
}

fn udp_pair() -> (UdpSocket, UdpSocket) {
    let bind = |netns: &str, address: &str| {
        run_in(Some(netns), || UdpSocket::bind(address)).unwrap().unwrap()
    };
    let (client, server) = (bind("client", "10.1.1.1:0"), bind("server", "10.1.1.2:0"));
    client.connect(server.local_addr().unwrap()).unwrap();
    server.connect(client.local_addr().unwrap()).unwrap();
    client.set_read_timeout(Some(PATIENCE)).unwrap();
    server.set_read_timeout(Some(PATIENCE)).unwrap();
    (client, server)
}

fn delay_and_blackout_and_hold(emulator: &Emulator) {
    let (client, server) = udp_pair();
    let mut buffer = [0; 16];
    emulator.set(serde_json::json!({ "delay_ms": 30 })).unwrap();
    let begin = Instant::now();
    client.send(b"one").unwrap();
    assert_eq!(server.recv(&mut buffer).unwrap(), 3);
    server.send(b"back").unwrap();
    assert_eq!(client.recv(&mut buffer).unwrap(), 4);
    assert!(begin.elapsed() >= Duration::from_millis(60), "{:?}", begin.elapsed());

    let before = emulator.counter("a_to_b", "blackout_drops");
    emulator.set(serde_json::json!({ "blackout": true, "delay_ms": 0 })).unwrap();
    client.send(b"into the dark").unwrap();
    emulator.wait_for("a_to_b", "blackout_drops", before + 1);
    emulator.set(serde_json::json!({ "blackout": false, "hold": true })).unwrap();
    let arrived = emulator.counter("a_to_b", "packets_in");
    client.send(b"held").unwrap();
    emulator.wait_for("a_to_b", "packets_in", arrived + 1);
    emulator.set(serde_json::json!({ "hold": false })).unwrap();
    let length = server.recv(&mut buffer).unwrap();
    assert_eq!(&buffer[..length], b"held");
}

fn order_is_kept_unless_packets_may_overtake(emulator: &Emulator) {
    const PACKETS: u32 = 200;
    let (client, server) = udp_pair();
    for reorder in [false, true] {
        let varying = serde_json::json!({ "delay_ms": 50, "jitter_sd_ms": 15, "reorder": reorder });
        emulator.set(varying).unwrap();
        for number in 0..PACKETS {
            client.send(&number.to_be_bytes()).unwrap();
        }
        let mut buffer = [0; 4];
        let mut received: Vec<u32> = (0..PACKETS)
            .map(|_| {
                assert_eq!(server.recv(&mut buffer).unwrap(), 4);
                u32::from_be_bytes(buffer)
            })
            .collect();
        assert_eq!(received.is_sorted(), !reorder, "{received:?}");
        received.sort_unstable();
        assert_eq!(received, (0..PACKETS).collect::<Vec<_>>());
    }
    let plain = serde_json::json!({ "delay_ms": 0, "jitter_sd_ms": 0, "reorder": false });
    emulator.set(plain).unwrap();
}

fn a_policer_drops_beyond_its_burst(emulator: &Emulator) {
    const BURST: u64 = 3_000;
    const PACKETS: u64 = 100;
    let (client, _server) = udp_pair();
    let error = emulator.set(serde_json::json!({ "policer": true })).unwrap_err();
    assert!(error.contains("burst_bytes") && error.contains("1500"), "{error}");
    let counters = || ["packets_in", "policer_drops"].map(|name| emulator.counter("a_to_b", name));
    // A packet a second: what the rate adds is little.
    let policed = serde_json::json!({ "policer": true, "burst_bytes": BURST, "rate_mbps": 0.001 });
    let begin = Instant::now();
    emulator.set(policed).unwrap();
    let [before, dropped_before] = counters();
    for _ in 0..PACKETS {
        client.send(&[0; 97]).unwrap();
    }
    emulator.wait_for("a_to_b", "packets_in", before + PACKETS);
    let [after, dropped_after] = counters();
    let passed = (after - before) - (dropped_after - dropped_before);
    // 97 bytes and the headers of UDP and IPv4 are 125 bytes.
    let most = BURST / 125 + 1 + begin.elapsed().as_secs();
    assert!((1..=most).contains(&passed), "{passed} passed, not 1 to {most}");
    let open = serde_json::json!({ "policer": false, "burst_bytes": 0, "rate_mbps": 500 });
    emulator.set(open).unwrap();
}

/// On real packets; how close the values are says something about the machine, and is not judged here.
fn calibration_measures_jitter() {
    let varying =
        configuration("af-packet").replace("delay_ms = 2", "delay_ms = 9\njitter_sd_ms = 2");
    std::fs::write("/run/9.toml", varying).unwrap();
    let output = Command::new(BINARY)
        .args(["calibrate", "/run/9.toml", "--json", "--duration", "0.1"])
        .output()
        .unwrap();
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(matches!(output.status.code(), Some(0 | 1)), "{message}");
    let said: Value = serde_json::from_slice(&output.stdout).unwrap();
    let measured = said["links"][0]["measurements"].as_array().unwrap();
    for (quantity, expected) in [("delay_ms", 9.0), ("jitter_sd_ms", 2.0)] {
        let found: Vec<_> = measured.iter().filter(|row| row["quantity"] == quantity).collect();
        assert_eq!(found.len(), 2, "one for each direction: {said:#}");
        for row in found {
            assert!((row["expected"].as_f64().unwrap() - expected).abs() < 0.1, "{row}");
            assert!(row["measured"].as_f64().unwrap() > 0.0, "{row}");
        }
    }
}

fn commands_are_checked(emulator: &Emulator) {
    let error = emulator.set(serde_json::json!({ "loss": 2 })).unwrap_err();
    assert!(error.contains("loss") && error.contains("0 to 1"), "{error}");
    let output = Command::new(BINARY)
        .args(["set", "--control"])
        .arg(&emulator.control)
        .args(["wlan", "both", "loss=0"])
        .output()
        .unwrap();
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2));
    assert!(message.contains("wlan") && message.contains("wifi"), "{message}");
}

fn trigger_starts_the_schedule(emulator: &Emulator) {
    let delay =
        || emulator.stats()["links"][0]["b_to_a"]["parameters"]["delay_ms"].as_f64().unwrap();
    assert_eq!(delay(), 0.0);
    let result = ask(&emulator.control, &Request::Trigger).unwrap();
    assert_eq!(result["schedules"], 1);
    let begin = Instant::now();
    while delay() != 7.0 {
        assert!(begin.elapsed() < PATIENCE, "the schedule did not start");
        thread::yield_now();
    }
}

/// Another's interface is left alone and named; that of a dead emulator is replaced.
fn refuses_what_is_not_its_own() {
    std::fs::write("/run/0.toml", configuration("af-packet")).unwrap();
    command("ip link add em-wifi-a type veth peer name other");
    let output = Command::new(BINARY).args(["run", "/run/0.toml"]).output().unwrap();
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{message}");
    assert!(message.contains("em-wifi-a") && message.contains("ip link del"), "{message}");
    // No process has this number: it is beyond the largest that Linux gives.
    let alias = "sumrate-link process 99999999";
    let status = Command::new("ip")
        .args(["link", "set", "dev", "em-wifi-a", "alias", alias])
        .status()
        .unwrap();
    assert!(status.success());
    let mut emulator = Emulator::start(&configuration("af-packet"), 0);
    emulator.stop();
}
