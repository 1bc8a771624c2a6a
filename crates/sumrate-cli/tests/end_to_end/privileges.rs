//! What the daemons still may after they have started, and whom their status socket answers.

use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use nix::sys::signal::Signal;

use crate::harness::{Client, Daemon, Server, json, run, stderr, sumrate};
use crate::web;

const NOBODY: u32 = 65534;
const NET_BIND_SERVICE: u64 = 1 << 10;
const NET_ADMIN: u64 = 1 << 12;

/// Where nothing may be left out, as CI says.
fn nothing_is_left_out() -> bool {
    std::env::var_os("SUMRATE_EVERY_FAULT").is_some_and(|value| value == "1")
}

fn is_root() -> bool {
    let root = nix::unistd::geteuid().is_root();
    assert!(root || !nothing_is_left_out(), "only root can show this: run the tests as root");
    root
}

/// What the kernel says of a process and of each of its threads.
fn status(daemon: &Daemon) -> Vec<String> {
    let threads = std::fs::read_dir(format!("/proc/{}/task", daemon.id())).unwrap();
    threads
        .map(|thread| std::fs::read_to_string(thread.unwrap().path().join("status")).unwrap())
        .collect()
}

fn field<'a>(status: &'a str, name: &str) -> &'a str {
    let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    line.unwrap_or_else(|| panic!("no {name} in {status}")).trim()
}

fn capabilities(status: &str, set: &str) -> u64 {
    u64::from_str_radix(field(status, set), 16).unwrap()
}

#[test]
fn daemons_keep_few_capabilities_gain_none_and_leave_no_core() {
    let server = Server::start(&[]);
    let client = server.client(&[]);
    // The default congestion control is all that could need one, where not everybody may use it.
    let free = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_allowed_congestion_control");
    let needed = match free {
        Ok(free) if free.split_whitespace().any(|name| name == "cubic") => 0,
        _ => NET_ADMIN,
    };
    let own = std::fs::read_to_string("/proc/self/status").unwrap();
    for daemon in [&server.daemon, &client.daemon] {
        for status in status(daemon) {
            assert_eq!(field(&status, "NoNewPrivs"), "1");
            for set in ["CapEff", "CapPrm"] {
                let expected = needed & capabilities(&own, "CapPrm");
                assert_eq!(capabilities(&status, set), expected, "{set}");
            }
            assert_eq!(capabilities(&status, "CapInh") | capabilities(&status, "CapAmb"), 0);
            if is_root() {
                let expected = needed & capabilities(&own, "CapBnd");
                assert_eq!(capabilities(&status, "CapBnd"), expected);
            }
        }
        let limits = std::fs::read_to_string(format!("/proc/{}/limits", daemon.id())).unwrap();
        let core = limits.lines().find(|line| line.starts_with("Max core file size")).unwrap();
        let most = core.split_whitespace().nth(5).unwrap();
        assert!(matches!(most, "0" | "1"), "{core}");
    }
}

#[test]
fn a_crash_writes_no_core() {
    let directory = tempfile::tempdir().unwrap();
    let dumping = |script: &str, arguments: &[&str]| {
        let mut command = Command::new("sh");
        command.args(["-c", script, "sh", env!("CARGO_BIN_EXE_sumrate")]).args(arguments);
        command.current_dir(&directory).env("XDG_RUNTIME_DIR", directory.path());
        command
    };
    let control = dumping("ulimit -c unlimited && kill -ABRT $$", &[]).status().unwrap();
    if !control.core_dumped() {
        return test_skip::skipped("nothing dumps core on this machine");
    }
    let state = directory.path().join("state");
    let mut daemon = Daemon::start(dumping(
        "ulimit -c unlimited && exec \"$@\"",
        &["serve", "--json", "--listen", "127.0.0.1:0", "--state", state.to_str().unwrap()],
    ));
    daemon.signal(Signal::SIGABRT);
    let status = daemon.wait();
    assert_eq!(status.signal(), Some(Signal::SIGABRT as i32));
    assert!(!status.core_dumped());
}

/// A directory in which `nobody` may do everything and others nothing.
fn nobodys() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    chown(directory.path(), Some(NOBODY), None).unwrap();
    std::fs::set_permissions(&directory, PermissionsExt::from_mode(0o700)).unwrap();
    directory
}

fn serve_as_nobody(listen: &str) -> Server {
    let directory = nobodys();
    let mut command = sumrate(directory.path());
    command.args(["serve", "--json", "--user", "nobody", "--listen", listen]);
    command.args(["--allow", "127.0.0.0/8", "--state"]).arg(directory.path().join("state"));
    Server { daemon: Daemon::start(command), directory }
}

fn is_nobody(status: &str, capability: u64) {
    for ids in ["Uid", "Gid"] {
        let ids: Vec<&str> = field(status, ids).split_whitespace().collect();
        assert_eq!(ids, ["65534"; 4], "{status}");
    }
    assert!(matches!(field(status, "Groups"), "" | "65534"), "{status}");
    for set in ["CapEff", "CapPrm", "CapBnd"] {
        assert_eq!(capabilities(status, set), capability, "{set}");
    }
    assert_eq!(field(status, "NoNewPrivs"), "1");
}

#[test]
fn both_ends_run_as_another_user_without_any_capability() {
    if !is_root() {
        return test_skip::skipped("only root can become somebody else");
    }
    let server = serve_as_nobody("127.0.0.1:0");
    // The link is root's, in a directory of root's: it is read before.
    let roots = tempfile::tempdir().unwrap();
    let link = roots.path().join("link");
    sumrate_cli::output::write_private(&link, &server.link()).unwrap();
    let mut command = sumrate(roots.path());
    command.arg("up").arg(format!("@{}", link.display()));
    // Binding to an interface needs no privilege.
    command.args(["--json", "--user", "nobody", "--path", "a=lo", "--path", "b=127.0.0.2"]);
    command.args(["--socks", "127.0.0.1:0", "--http", "127.0.0.1:0"]);
    let client = Client { daemon: Daemon::start(command) };
    for status in status(&server.daemon).iter().chain(&status(&client.daemon)) {
        is_nobody(status, 0);
    }
    let web = web::start("127.0.0.1");
    let output = client.curl_socks(&[&format!("http://{web}/500000")]);
    assert_eq!(output.stdout, web::body(500_000), "{}", stderr(&output));
    // Its files are that user's, and it still reads and writes them.
    let owner = |path: PathBuf| std::os::unix::fs::MetadataExt::uid(&path.metadata().unwrap());
    assert_eq!(owner(server.runtime().join("state/server.key")), NOBODY);
    assert_eq!(owner(client.status_socket()), NOBODY);
}

#[test]
fn a_low_port_is_the_only_reason_for_its_capability() {
    if !is_root() {
        return test_skip::skipped("only root can become somebody else");
    }
    let first_open = std::fs::read_to_string("/proc/sys/net/ipv4/ip_unprivileged_port_start");
    let open = first_open.is_ok_and(|port| port.trim() == "0");
    let server = serve_as_nobody("127.0.0.1:879");
    for status in status(&server.daemon) {
        is_nobody(&status, if open { 0 } else { NET_BIND_SERVICE });
    }
}

#[test]
fn users_that_cannot_be_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let state = directory.path().join("state");
    let serve = |user: &str| {
        let state = state.to_str().unwrap();
        let arguments = ["serve", "--listen", "127.0.0.1:0", "--state", state, "--user", user];
        run(directory.path(), &arguments)
    };
    let cases: &[(&str, i32, &str)] = match is_root() {
        true => &[("no-such-user", 2, "no such user"), ("root", 2, "name another one")],
        false => &[("nobody", 3, "needs root")],
    };
    for (user, code, word) in cases {
        let output = serve(user);
        assert_eq!(output.status.code(), Some(*code), "{}", stderr(&output));
        assert!(stderr(&output).contains(word), "{}", stderr(&output));
    }
    assert!(!state.exists(), "nothing is made before");
    let output = run(directory.path(), &["serve", "--listen", "127.0.0.1:0", "--user", "nobody"]);
    assert!(stderr(&output).contains("--state"), "{}", stderr(&output));
}

/// A command as another user.
fn as_nobody(program: &Path, arguments: &[&str]) -> Output {
    Command::new("setpriv")
        .args(["--reuid", "65534", "--regid", "65534", "--clear-groups"])
        .arg(program)
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

/// A copy of the program that everybody can reach.
fn program_for_all(place: &Path) -> PathBuf {
    let program = place.join("sumrate");
    let copied = Command::new("cp").arg(env!("CARGO_BIN_EXE_sumrate")).arg(&program).status();
    assert!(copied.unwrap().success());
    program
}

/// `sumrate status` as another user.
fn status_as_nobody(place: &Path, socket: &Path) -> Output {
    let arguments = ["status", "--json", "--socket", socket.to_str().unwrap()];
    as_nobody(&program_for_all(place), &arguments)
}

#[test]
fn the_control_socket_obeys_its_owner_only() {
    if !is_root() {
        return test_skip::skipped("only root can ask as somebody else");
    }
    let place = tempfile::tempdir().unwrap();
    std::fs::set_permissions(&place, PermissionsExt::from_mode(0o755)).unwrap();
    let socket = place.path().join("up.sock");
    let server = Server::start(&[]);
    let path = ["--path", "a=127.0.0.1", "--status-socket", socket.to_str().unwrap()];
    let _client = server.client(&path);
    let control = socket.with_extension("control");
    assert_eq!(control.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    let set = |weight: &'static str| {
        ["path", "set", "a", "--weight", weight, "--json", "--socket", socket.to_str().unwrap()]
    };
    let weight = || {
        let list = ["path", "list", "--json", "--socket", socket.to_str().unwrap()];
        json(&run(server.runtime(), &list))["paths"][0]["weight"].clone()
    };
    assert!(run(server.runtime(), &set("3")).status.success());
    assert_eq!(weight(), 3);
    let program = program_for_all(place.path());
    let refused = as_nobody(&program, &set("4"));
    assert!(stderr(&refused).contains("ermission denied"), "{}", stderr(&refused));
    // Even where the modes let everybody in, nothing is done and nothing said.
    for path in [&socket, &control] {
        std::fs::set_permissions(path, PermissionsExt::from_mode(0o777)).unwrap();
    }
    let ignored = as_nobody(&program, &set("4"));
    assert_eq!(ignored.status.code(), Some(1), "{ignored:?}");
    assert_eq!(String::from_utf8_lossy(&ignored.stdout).matches("weight").count(), 0);
    // Whatever is sent, not even that it was no request.
    let curl = ["--silent", "--show-error", "--max-time", "5", "--unix-socket"];
    let curl = [&curl[..], &[control.to_str().unwrap(), "http://x/"]].concat();
    let stranger = as_nobody(Path::new("curl"), &curl);
    assert!(stranger.stdout.is_empty() && !stranger.status.success(), "{stranger:?}");
    assert_eq!(weight(), 3, "a stranger has changed a path");
    assert!(run(server.runtime(), &set("5")).status.success());
    assert_eq!(weight(), 5, "it goes on");
}

#[test]
fn the_status_socket_answers_its_owner_only() {
    if !is_root() {
        return test_skip::skipped("only root can ask as somebody else");
    }
    let place = tempfile::tempdir().unwrap();
    std::fs::set_permissions(&place, PermissionsExt::from_mode(0o755)).unwrap();
    let socket = place.path().join("serve.sock");
    let server = Server::start(&["--status-socket", socket.to_str().unwrap()]);
    assert_eq!(socket.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    let refused = status_as_nobody(place.path(), &socket);
    assert_eq!(refused.status.code(), Some(3), "no privilege");
    assert!(stderr(&refused).contains("permission denied"), "{}", stderr(&refused));
    // Even where the mode lets everybody in.
    std::fs::set_permissions(&socket, PermissionsExt::from_mode(0o777)).unwrap();
    let refused = status_as_nobody(place.path(), &socket);
    assert_eq!(refused.status.code(), Some(1));
    assert!(!String::from_utf8_lossy(&refused.stdout).contains("sessions"), "{refused:?}");
    let own = run(server.runtime(), &["status", "--json", "--socket", socket.to_str().unwrap()]);
    assert!(own.status.success(), "{}", stderr(&own));
}

/// A unit of `packaging/systemd`.
fn unit(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/systemd").join(name)
}

/// The command line of a unit, with its places replaced.
fn exec_start(name: &str, places: &[(&str, &str)]) -> Vec<String> {
    let text = std::fs::read_to_string(unit(name)).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix("ExecStart=")).unwrap();
    let mut line = line.strip_prefix("/usr/local/bin/sumrate ").unwrap().to_owned();
    for (from, to) in places {
        assert!(line.contains(from), "{from} is not in {line}");
        line = line.replace(from, to);
    }
    line.split(' ').map(str::to_owned).collect()
}

#[test]
fn the_units_start_what_they_name() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::set_permissions(&directory, PermissionsExt::from_mode(0o700)).unwrap();
    let place = directory.path().to_str().unwrap().to_owned();
    let start = |name: &str, places: &[(&str, &str)], more: &[&str]| {
        let mut command = sumrate(directory.path());
        command.args(exec_start(name, places)).arg("--json").args(more);
        Daemon::start(command)
    };
    let file = directory.path().join("config.toml");
    let link = directory.path().join("link.txt");
    let text = std::fs::read_to_string(unit("../config.toml")).unwrap();
    let text = text.replace("0.0.0.0:7443", "127.0.0.1:0").replace("127.0.0.1:1080", "127.0.0.1:0");
    std::fs::write(&file, text.replace("/etc/sumrate/link", link.to_str().unwrap())).unwrap();
    let config = ("/etc/sumrate/config.toml", file.to_str().unwrap());
    let places = [config, ("${STATE_DIRECTORY}", &*place), ("${RUNTIME_DIRECTORY}", &place)];
    let _server = start("sumrate-serve.service", &places, &[]);
    assert_eq!(link.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    let client = start("sumrate-up.service", &places, &[]);
    assert_eq!(client.first["event"], "ready", "{}", client.first);
    assert!(
        directory.path().join("serve.sock").exists() && directory.path().join("up.sock").exists()
    );
}

#[test]
fn the_units_are_hardened_as_systemd_judges_it() {
    for name in ["sumrate-serve.service", "sumrate-up.service"] {
        let text = std::fs::read_to_string(unit(name)).unwrap();
        for line in ["User=sumrate", "CapabilityBoundingSet=", "NoNewPrivileges=yes", "LimitCORE=0"]
        {
            assert!(text.lines().any(|found| found == line), "{name} has no {line}");
        }
        // Exposure from 0 (best) to 100; about 95 without any of this.
        let judged = Command::new("systemd-analyze")
            .args(["security", "--offline=yes", "--threshold=25"])
            .arg(unit(name))
            .output();
        match judged {
            Ok(output) => assert!(output.status.success(), "{}", stderr(&output)),
            Err(error) if nothing_is_left_out() => panic!("systemd-analyze: {error}: install it"),
            Err(error) => test_skip::skipped(&format!("systemd-analyze: {error}")),
        }
    }
}
