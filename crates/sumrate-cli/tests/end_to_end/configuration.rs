//! Bad configuration is refused at once, with what to do.

use std::net::TcpListener;
use std::process::Command;

use crate::harness::{Daemon, Server, json, run, stderr, sumrate};

/// Fails with this code and says all of these.
fn refused(arguments: &[&str], code: i32, words: &[&str]) {
    let directory = tempfile::tempdir().unwrap();
    let output = run(directory.path(), arguments);
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {said}");
    for word in words {
        assert!(said.contains(word), "{arguments:?} did not say `{word}`: {said}");
    }
    assert!(!said.contains("panicked"), "{said}");
}

#[test]
fn malformed_links() {
    let link = Server::start(&[]).link();
    let cut = link.split('#').next().unwrap();
    refused(&["up", "http://x"], 2, &["sumrate://", "whole line"]);
    refused(&["up", cut], 2, &["#", "quote the link"]);
    refused(&["up", &link.replace("v=1", "v=9")], 2, &["version"]);
    refused(&["up", &link.replace("&c=", "&c=!")], 2, &["credential"]);
    refused(&["up", &link, "--insecure-plaintext"], 2, &["leave --insecure-plaintext out"]);
    refused(&["bench", "@/nonexistent/link"], 2, &["/nonexistent/link", "--link-file"]);
    refused(&["up"], 2, &["LINK"]);
    refused(&["up", &link, &link], 2, &["two join links lead to the server 127.0.0.1:"]);
}

#[test]
fn paths_and_protocol() {
    let server = Server::start(&[]);
    let link = server.link();
    let up = |more: &[&'static str], words: &[&str]| {
        refused(&[&["up", &link], more].concat(), 2, words);
    };
    up(&["--path", "a=nosuch0"], &["no interface nosuch0", "lo"]);
    up(&["--path", "a=192.0.2.55"], &["192.0.2.55", "ip address"]);
    up(&["--path", "lo"], &["NAME=IFACE"]);
    up(&["--path", "a=lo", "--path", "a=lo"], &["two paths are called a"]);
    up(&["--path", "a=lo", "--forward", "b"], &["--forward b", "a"]);
    up(&["--cc", "nonsense"], &["--cc nonsense", "cubic"]);
    up(&["--scheduler", "x"], &["two-ended", "just-in-time", "minrtt", "musher"]);
    up(&["--linger", "x"], &["seconds"]);
    up(&["--thesis-window", "64Ki"], &["--thesis-window", "--window-mode thesis"]);
    up(&["--window-mode", "thesis", "--window", "1Mi"], &["--window", "--thesis-window"]);
    up(&["--window", "1Ki"], &["window is 1024", "16384"]);
    up(&["--window", "2Gi"], &["1 GiB"]);
    up(&["--window-mode", "thesis", "--thesis-window", "1Ki"], &["thesis_window is 1024", "4096"]);
    up(&["--window", "x"], &["number of bytes"]);
    up(&["--socks", "off"], &["both proxies are off"]);
    up(&["--socks", "0.0.0.0:0"], &["--socks-auth", "--socks-open"]);
    up(&["--socks", "1080"], &["ADDR:PORT"]);
    up(&["--ready-file", "/nonexistent/x"], &["--ready-file /nonexistent/x"]);
    up(
        &["--socks", "127.0.0.1:0", "--status-socket", "/etc/passwd"],
        &["/etc/passwd", "not a socket"],
    );
}

#[test]
fn ports_in_use_and_addresses_of_others() {
    let server = Server::start(&[]);
    let (link, listen) = (server.link(), server.listen());
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = taken.local_addr().unwrap().to_string();
    refused(&["up", &link, "--socks", &taken], 2, &[&taken, "another process", "--socks"]);
    refused(&["up", &link, "--http", &taken, "--socks", "off"], 2, &["HTTP", "--http"]);
    refused(&["serve", "--listen", &listen], 2, &[&listen, "Another process", "ss -ltnp"]);
    refused(&["serve", "--listen", "192.0.2.1:7443"], 2, &["192.0.2.1", "ip address"]);
    refused(&["serve"], 2, &["--listen"]);
    refused(&["serve", "--listen", "7443"], 2, &["--listen"]);
    refused(&["serve", "--listen", &listen, "--allow", "x/y"], 2, &["ADDRESS/BITS"]);
    refused(&["serve", "--listen", &listen, "--memory", "1Mi"], 2, &["--memory", "16Mi"]);
    refused(&["serve", "--listen", &listen, "--deny-port", "0"], 2, &["--deny-port", "65535"]);
}

#[test]
fn missing_privilege_has_its_own_code() {
    let first_open = std::fs::read_to_string("/proc/sys/net/ipv4/ip_unprivileged_port_start");
    if first_open.is_ok_and(|port| port.trim() == "0") {
        return test_skip::skipped("every port is open to everybody here");
    }
    let directory = tempfile::tempdir().unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o777);
    std::fs::set_permissions(&directory, mode).unwrap();
    // Where everybody can read it; by a process of its own, so that no test running beside this one
    // hands the file, open for writing, to a child ('text file busy').
    let program = directory.path().join("sumrate");
    let copied = Command::new("cp").arg(env!("CARGO_BIN_EXE_sumrate")).arg(&program).status();
    assert!(copied.unwrap().success());
    let output = Command::new("setpriv")
        .args(match nix::unistd::geteuid().is_root() {
            true => &["--reuid", "65534", "--clear-groups", "--bounding-set", "-all"][..],
            false => &["--no-new-privs"],
        })
        .arg(&program)
        .args(["serve", "--listen", "127.0.0.1:1"])
        .env("XDG_STATE_HOME", directory.path().join("state"))
        .env("XDG_RUNTIME_DIR", directory.path().join("runtime"))
        .output()
        .unwrap();
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(said.contains("CAP_NET_BIND_SERVICE"), "{said}");
}

#[test]
fn state_that_cannot_be_used() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("file");
    std::fs::write(&file, "x").unwrap();
    let file = file.to_str().unwrap();
    refused(&["serve", "--listen", "127.0.0.1:0", "--state", file], 2, &[file]);
    let open = directory.path().join("open");
    std::fs::create_dir(&open).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o777);
    std::fs::set_permissions(&open, mode).unwrap();
    let open = open.to_str().unwrap();
    refused(&["serve", "--listen", "127.0.0.1:0", "--state", open], 2, &[open]);
    refused(&["credential", "revoke", "xyz", "--state", file], 2, &[file]);
}

#[test]
fn bench_limits() {
    let server = Server::start(&[]);
    let link = server.link();
    let bench = |more: &[&'static str], words: &[&str]| {
        refused(&[&["bench", &link], more].concat(), 2, words);
    };
    bench(&["--bytes", "0"], &["--bytes"]);
    bench(&["--bytes", "1Mi", "--time", "1"], &["--time"]);
    bench(&["--time", "0"], &["0 s is not possible"]);
    bench(&["--streams", "0"], &["--streams"]);
    bench(&["--interval", "0"], &["too short"]);
    bench(&["--time", "86400", "--interval", "0.001"], &["longer --interval"]);
    bench(&["--path", "a=lo", "--wait-paths", "2"], &["--wait-paths 2"]);
}

#[test]
fn failures_in_operation_have_code_one_and_are_json_too() {
    let directory = tempfile::tempdir().unwrap();
    let output = run(directory.path(), &["status", "--json"]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(json(&output)["exit_code"], 1);
    assert!(stderr(&output).contains("nothing runs here"));
}

#[test]
fn key_files_that_others_can_read_are_refused_with_what_to_do() {
    let directory = tempfile::tempdir().unwrap();
    let state = directory.path().join("state");
    let state = state.to_str().unwrap();
    let add = ["credential", "add", "--advertise", "192.0.2.1:7443", "--json", "--state", state];
    let added = json(&run(directory.path(), &add));
    let credential = format!("credentials/{}.json", added["added"]["id"].as_str().unwrap());
    for file in ["server.key", "server.crt", &credential] {
        let path = format!("{state}/{file}");
        let set = |mode| {
            let mode = std::os::unix::fs::PermissionsExt::from_mode(mode);
            std::fs::set_permissions(&path, mode).unwrap();
        };
        assert_eq!(
            run(directory.path(), &["credential", "list", "--state", state]).status.code(),
            Some(0)
        );
        for exposed in [0o644, 0o640, 0o604, 0o620, 0o700 | 0o010] {
            set(exposed);
            let advice = format!("chmod 600 {path}");
            refused(&["serve", "--listen", "127.0.0.1:0", "--state", state], 2, &[&advice]);
        }
        set(0o600);
    }
}

#[test]
fn a_cgroup_that_is_not_there_is_refused_before_anything_starts() {
    // Whatever the rights are, and whether the link is right.
    for cgroup in ["no/such/cgroup", "/sys/fs/cgroup/no/such/cgroup/"] {
        let up = ["up", "http://x", "--redirect", "--only-cgroup", cgroup];
        refused(&up, 2, &["--only-cgroup no/such/cgroup: ", "/sys/fs/cgroup/no/such/cgroup"]);
    }
}

#[test]
fn a_server_warns_of_an_address_that_it_advertises_and_cannot_be_reached_at() {
    let directory = tempfile::tempdir().unwrap();
    let log = directory.path().join("log");
    let start = |advertise: &str| {
        let mut command = sumrate(directory.path());
        command.args(["serve", "--json", "--listen", "127.0.0.1:0", "--advertise", advertise]);
        command.arg("--state").arg(directory.path().join("state"));
        let daemon = Daemon::start_with_log(command, std::fs::File::create(&log).unwrap().into());
        let listens = daemon.first["listen"][0].as_str().unwrap().to_owned();
        (std::fs::read_to_string(&log).unwrap(), listens)
    };
    assert_eq!(start("203.0.113.9:7443").0, "");
    let (said, listens) = start("[2001:db8::1]:7443");
    let warning = format!(
        "--advertise [2001:db8::1]:7443 is IPv6, but this server listens on IPv4 only ({listens})"
    );
    assert!(said.contains("WARN") && said.contains(&warning), "{said}");
}
