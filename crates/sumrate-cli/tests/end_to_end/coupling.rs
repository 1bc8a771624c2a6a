//! Coupled congestion control: in the kernel with the privilege, scaled windows without.

use std::process::{Command, Output};

use serde_json::Value;

use crate::harness::{Server, json, run, stderr, sumrate};
use crate::schemas::conforms;

const PATHS: [&str; 4] = ["--path", "a=127.0.0.1", "--path", "b=127.0.0.2"];

const SYS_ADMIN: u64 = 1 << 21;
const PERFMON: u64 = 1 << 38;
const BPF: u64 = 1 << 39;

fn cc(server: &Server, arguments: &[&str]) -> (Output, Value) {
    let output = run(server.runtime(), &[&["cc"], arguments, &["--json"]].concat());
    let answer = json(&output);
    conforms(if output.status.success() { "cc" } else { "error" }, &answer);
    (output, answer)
}

fn algorithm<'a>(answer: &'a Value, name: &str) -> &'a Value {
    let all = answer["algorithms"].as_array().unwrap();
    all.iter().find(|algorithm| algorithm["name"] == name).unwrap()
}

fn bench(server: &Server, more: &[&str]) -> (Value, String) {
    let link = server.link();
    let transfer = ["--bytes", "4Mi", "--verify", "--json"];
    let arguments = [&["bench", &link][..], &transfer, &PATHS, more].concat();
    let output = run(server.runtime(), &arguments);
    assert!(output.status.success(), "{}", stderr(&output));
    (json(&output), stderr(&output))
}

/// One test, because the kernel's list of congestion controls is one for all.
#[test]
fn balia_is_the_kernels_with_the_privilege_and_refused_with_a_code_without() {
    let server = Server::start(&[]);
    let (_, before) = cc(&server, &["list"]);
    let was_loaded = algorithm(&before, "balia")["loaded"] == true;
    let (output, answer) = cc(&server, &["load", "balia"]);
    if !output.status.success() {
        assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
        assert!(stderr(&output).contains("CAP_BPF"), "{}", stderr(&output));
        return;
    }
    assert_eq!(algorithm(&answer, "balia")["loaded"], true);
    let (report, said) = bench(&server, &["--cc", "balia"]);
    assert_eq!(report["congestion_control"], "sumrate_balia");
    assert_eq!(report["shared_bottleneck"], false);
    assert!(!said.contains("not coupled"), "{said}");
    // What is for where it cannot be loaded is no reason to refuse.
    let (report, said) = bench(&server, &["--cc", "balia", "--shared-bottleneck", "a,b"]);
    assert_eq!(report["shared_bottleneck"], false);
    assert!(said.contains("balia is loaded, and couples all paths"), "{said}");
    // A daemon that gave its privileges up still says which of its sockets belong together.
    let coupled = Server::start(&["--cc", "balia"]);
    let status = std::fs::read_to_string(format!("/proc/{}/status", coupled.daemon.id())).unwrap();
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:")).unwrap();
    let effective = u64::from_str_radix(effective.trim(), 16).unwrap();
    assert_eq!(effective & (BPF | PERFMON | SYS_ADMIN), 0, "{effective:#x}");
    let (_, now) = bench_of(&coupled);
    let groups = algorithm(&now, "balia")["groups"].as_array().unwrap();
    let pair = |group: &&Value| group["kind"] == "session" && group["subflows"] == 2;
    assert!(groups.iter().filter(pair).count() >= 1, "{groups:?}");
    if !was_loaded {
        cc(&server, &["unload", "balia"]);
        let (output, _) = cc(&server, &["unload", "balia"]);
        assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
        assert!(stderr(&output).contains("not loaded"), "{}", stderr(&output));
    }
}

/// The server sends to a client; then what is coupled while the session is still there.
fn bench_of(server: &Server) -> (Output, Value) {
    let link = server.link();
    let mut client = sumrate(server.runtime());
    client.args(["bench", &link, "--reverse", "--time", "2", "--json"]).args(PATHS);
    let mut client = client.stdout(std::process::Stdio::null()).spawn().unwrap();
    let begun = std::time::Instant::now();
    let found = loop {
        let found = cc(server, &["list"]);
        let groups = algorithm(&found.1, "balia")["groups"].as_array().unwrap().clone();
        let there = groups.iter().any(|group| group["subflows"] == 2);
        if there || begun.elapsed() > crate::harness::PATIENCE {
            break found;
        }
    };
    assert!(client.wait().unwrap().success());
    found
}

#[test]
fn without_the_privilege_windows_are_scaled_and_it_says_so() {
    let server = Server::start(&[]);
    let link = server.link();
    let place = tempfile::tempdir().unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o777);
    std::fs::set_permissions(&place, mode).unwrap();
    let program = place.path().join("sumrate");
    let copied = Command::new("cp").arg(env!("CARGO_BIN_EXE_sumrate")).arg(&program).status();
    assert!(copied.unwrap().success());
    let root = nix::unistd::geteuid().is_root();
    let other = ["--reuid", "65534", "--regid", "65534", "--clear-groups"];
    let unprivileged = |congestion_control| {
        let output = Command::new("setpriv")
            .args(if root { &other[..] } else { &["--no-new-privs"] })
            .arg(&program)
            .args(["bench", &link, "--bytes", "4Mi", "--verify", "--json"])
            .args(["--cc", congestion_control])
            .args(PATHS)
            .env("XDG_RUNTIME_DIR", place.path())
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
        output
    };
    let output = unprivileged("lia");
    let (report, said) = (json(&output), stderr(&output));
    conforms("bench", &report);
    assert_eq!(report["shared_bottleneck"], true);
    // Not the system's bbr, whose windows cannot be scaled.
    let used = report["congestion_control"].as_str().unwrap();
    assert!(["cubic", "reno"].contains(&used), "{used}: {said}");
    for words in ["--cc lia", "no faster than the fastest", "--shared-bottleneck"] {
        assert!(said.contains(words), "{said}");
    }
    // The control couples nothing, loaded or not.
    let output = unprivileged("sumrate_reno");
    let (report, said) = (json(&output), stderr(&output));
    assert_eq!(report["shared_bottleneck"], false);
    assert_eq!(report["congestion_control"], "reno", "{said}");
}

#[test]
fn paths_that_share_a_bottleneck_can_be_named_without_lia() {
    let server = Server::start(&[]);
    let (report, _) = bench(&server, &["--shared-bottleneck", "a,b"]);
    assert_eq!(report["shared_bottleneck"], true);
    // The control couples nothing by itself, in the kernel or not.
    let (report, said) = bench(&server, &["--cc", "sumrate_reno", "--shared-bottleneck", "a,b"]);
    assert_eq!(report["shared_bottleneck"], true, "{said}");
    assert!(!said.contains("changes nothing"), "{said}");
    let alone = ["--shared-bottleneck", "a"];
    let output = run(server.runtime(), &[&["bench", &server.link()], &PATHS[..], &alone].concat());
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert!(stderr(&output).contains("separated by commas"), "{}", stderr(&output));
    let misspelt = ["--shared-bottleneck", "a,c"];
    let output =
        run(server.runtime(), &[&["bench", &server.link()], &PATHS[..], &misspelt].concat());
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert!(stderr(&output).contains("--shared-bottleneck c"), "{}", stderr(&output));
    let output = run(server.runtime(), &["cc", "load", "vegas"]);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert!(stderr(&output).contains("balia"), "{}", stderr(&output));
}
