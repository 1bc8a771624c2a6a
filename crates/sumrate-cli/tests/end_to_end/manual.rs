//! Manual pages, completions and forms of the log.

use std::process::{Command, Stdio};

use serde_json::Value;

use crate::harness::{Server, json, run, stderr, sumrate};
use crate::schemas::conforms;

#[test]
fn pages_are_written_and_can_be_read() {
    let directory = tempfile::tempdir().unwrap();
    let output =
        run(directory.path(), &["man", "--json", "--dir", directory.path().to_str().unwrap()]);
    assert!(output.status.success(), "{}", stderr(&output));
    let written = json(&output);
    conforms("man", &written);
    let pages = written["files"].as_array().unwrap();
    assert!(
        pages.iter().any(|page| page.as_str().unwrap().ends_with("/sumrate-cp.1")),
        "{written}"
    );
    match Command::new("man")
        .args(["--warnings", "-l"])
        .arg(directory.path().join("sumrate-cp.1"))
        .output()
    {
        Ok(read) => {
            let text = String::from_utf8_lossy(&read.stdout);
            assert!(text.contains("--limit"), "{text}");
            assert!(!stderr(&read).contains("warning"), "{}", stderr(&read));
        }
        Err(error) => test_skip::skipped(&format!("man: {error}: the pages are not read")),
    }
    let first = run(directory.path(), &["man"]);
    assert!(String::from_utf8(first.stdout).unwrap().contains(".TH sumrate 1"));
    let nowhere = run(directory.path(), &["man", "--dir", "/nonexistent"]);
    assert_eq!(nowhere.status.code(), Some(2));
}

#[test]
fn bash_completes_commands_and_flags() {
    let script = format!(
        "source <({} completions bash) && COMP_WORDS=(sumrate cp --li) COMP_CWORD=2 && \
         _sumrate sumrate --li cp && echo ${{COMPREPLY[@]}}",
        env!("CARGO_BIN_EXE_sumrate")
    );
    let output = Command::new("bash").args(["-c", &script]).output().unwrap();
    let offered = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(offered.contains("--limit"), "{offered} {}", stderr(&output));
    let directory = tempfile::tempdir().unwrap();
    for shell in ["zsh", "fish"] {
        let output = run(directory.path(), &["completions", shell]);
        assert!(String::from_utf8_lossy(&output.stdout).contains("credential"), "{shell}");
    }
}

#[test]
fn the_log_as_json_has_an_object_a_line() {
    let server = Server::start(&[]);
    let mut command = sumrate(server.runtime());
    command.args(["-v", "--log-format", "json", "serve", "--listen", "127.0.0.1:0", "--state"]);
    command.arg(server.runtime().join("other")).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut line = String::new();
    std::io::BufRead::read_line(
        &mut std::io::BufReader::new(child.stderr.take().unwrap()),
        &mut line,
    )
    .unwrap();
    let event: Value = serde_json::from_str(&line).unwrap();
    assert_eq!((&event["level"], &event["message"]), (&"INFO".into(), &"accepting clients".into()));
    assert!(event["listen"].as_str().unwrap().contains("127.0.0.1"), "{event}");
    child.kill().unwrap();
    child.wait().unwrap();
}

/// A journal of its own: `/run` is another in this namespace.
const JOURNAL: &str = r#"
set -e
mount -t tmpfs none /run
mkdir -p /run/systemd/journal
python3 - "$@" <<'EOF'
import os, socket, subprocess, sys
journal = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
journal.bind("/run/systemd/journal/socket")
journal.settimeout(30)
child = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
while True:
    entry = journal.recv(1 << 20)
    if b"accepting clients" in entry:
        break
child.kill()
sys.stdout.write(entry.decode(errors="replace"))
sys.stdout.write("stderr: " + child.communicate()[1].decode())
EOF
"#;

#[test]
fn a_service_logs_to_the_journal_with_fields() {
    let able = Command::new("unshare").args(["-rm", "true"]).status();
    if !able.is_ok_and(|status| status.success()) {
        return test_skip::skipped("no namespaces here");
    }
    let directory = tempfile::tempdir().unwrap();
    let state = directory.path().join("state");
    let run = |more: &[&str], stream: &str| {
        let mut command = Command::new("unshare");
        command.args(["-rm", "sh", "-c", JOURNAL, "sh", env!("CARGO_BIN_EXE_sumrate"), "-v"]);
        command.args(more).args(["serve", "--listen", "127.0.0.1:0", "--state"]).arg(&state);
        let output = command.env("JOURNAL_STREAM", stream).output().unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
        String::from_utf8(output.stdout).unwrap()
    };
    for (more, stream) in [(&["--log-format", "journald"][..], ""), (&[], "8:12345")] {
        let entry = run(more, stream);
        assert!(entry.contains("PRIORITY") && entry.contains("F_LISTEN"), "{entry}");
        assert!(entry.ends_with("stderr: "), "nothing is said twice: {entry}");
    }
}
