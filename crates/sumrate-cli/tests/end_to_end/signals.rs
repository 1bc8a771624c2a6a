//! Orderly ends.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use nix::sys::signal::Signal;

use crate::harness::{PATIENCE, Server, json, run, stderr, sumrate};

#[test]
fn ctrl_c_and_term_end_both_commands_cleanly() {
    for (signal, code) in [(Signal::SIGINT, 130), (Signal::SIGTERM, 0)] {
        let mut server = Server::start(&[]);
        let ready = server.runtime().join("ready");
        let mut client = server.client(&["--ready-file", ready.to_str().unwrap()]);
        let socket = client.status_socket();
        assert!(ready.exists() && socket.exists());
        client.daemon.signal(signal);
        assert_eq!(client.daemon.wait().code(), Some(code));
        assert_eq!(client.daemon.wait_for("stopped")["event"], "stopped");
        assert!(!ready.exists() && !socket.exists());
        server.daemon.wait_for("session_closed");
        server.daemon.signal(signal);
        assert_eq!(server.daemon.wait().code(), Some(code));
        server.daemon.wait_for("stopped");
    }
}

#[test]
fn a_stopping_server_tells_its_clients() {
    let server = Server::start(&[]);
    let client = server.client(&[]);
    server.daemon.wait_for("session_opened");
    server.daemon.signal(Signal::SIGTERM);
    let lost = client.daemon.wait_for("session_lost");
    assert!(lost["reason"].as_str().unwrap().contains("the server stops"), "{lost}");
}

#[test]
fn ctrl_c_ends_a_measurement() {
    let server = Server::start(&[]);
    let mut command = crate::harness::sumrate(server.runtime());
    command.args(["bench", &server.link(), "--time", "600"]);
    let mut bench = command.spawn().unwrap();
    server.daemon.wait_for("session_opened");
    let socket = server.daemon.first["status_socket"].as_str().unwrap().to_owned();
    let begun = std::time::Instant::now();
    loop {
        assert!(begun.elapsed() < PATIENCE, "nothing is measured");
        let status = json(&run(server.runtime(), &["status", "--json", "--socket", &socket]));
        if status["sessions"][0]["received_bytes"].as_u64() > Some(1 << 20) {
            break;
        }
    }
    let pid = nix::unistd::Pid::from_raw(bench.id().try_into().unwrap());
    nix::sys::signal::kill(pid, Signal::SIGINT).unwrap();
    assert_eq!(bench.wait().unwrap().code(), Some(130));
    server.daemon.wait_for("session_closed");
}

#[test]
fn who_prints_without_end_stops_when_nobody_reads() {
    let server = Server::start(&[]);
    let socket = server.daemon.first["status_socket"].as_str().unwrap();
    for watching in
        [&["top", "--json"][..], &["status", "--watch"], &["status", "--watch", "--json"]]
    {
        let mut command = sumrate(server.runtime());
        command.args(watching).args(["--socket", socket]).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut first = String::new();
        // The reader goes with the end of this line, as in `| head -1`.
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut first).unwrap();
        assert!(!first.is_empty());
        let begun = std::time::Instant::now();
        let status = loop {
            if let Some(status) = child.try_wait().unwrap() {
                break status;
            }
            assert!(begun.elapsed() < PATIENCE, "{watching:?} goes on");
            std::thread::sleep(std::time::Duration::from_millis(20));
        };
        assert!(status.success(), "{watching:?}: {status}");
    }
}

#[test]
fn a_command_that_cannot_be_started_has_the_exit_codes_of_a_shell() {
    let directory = tempfile::tempdir().unwrap();
    let text = directory.path().join("text");
    std::fs::write(&text, "no program").unwrap();
    for (program, code) in [("no-such-program", 127), (text.to_str().unwrap(), 126)] {
        let output = run(directory.path(), &["run", "--socks", "127.0.0.1:1", "--", program]);
        assert_eq!(output.status.code(), Some(code), "{program}: {}", stderr(&output));
    }
}
