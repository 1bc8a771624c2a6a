//! What other users of this machine made first is neither believed nor used.

use std::io::{BufRead, BufReader};
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use crate::harness::{Server, run, stderr, sumrate};

const NOBODY: u32 = 65534;

/// A status socket that `nobody` serves, with a report that names the root process and proxy given to it.
const SQUATTER: &str = r#"
import json, os, socket, sys
os.setgroups([])
os.setgid(65534)
os.setuid(65534)
path, pid, proxy = sys.argv[1:]
hostile = "\x1b]0;owned\x07\u202e"
report = {"schema": "sumrate.status.v1", "version": hostile, "role": "client", "pid": int(pid),
          "uptime_s": 1.0, "proxies": {"socks": proxy, "http": None}, "outage": None, "sessions": [],
          "reload": {"count": 0, "applied": [], "needs_restart": [], "error": None}}
listener = socket.socket(socket.AF_UNIX)
listener.bind(path)
listener.listen()
print("there", flush=True)
while True:
    stream, _ = listener.accept()
    try:
        stream.sendall(json.dumps(report).encode())
    except OSError:
        pass
    stream.close()
"#;

fn is_root() -> bool {
    let root = nix::unistd::geteuid().is_root();
    if !root {
        test_skip::skipped("only root can be somebody else");
    }
    root
}

/// A process that ends with this.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn squat(socket: &Path, pid: u32, proxy: &str) -> Process {
    let mut squatter = Command::new("python3")
        .args(["-c", SQUATTER])
        .arg(socket)
        .args([&pid.to_string(), proxy])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(squatter.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "there\n");
    Process(squatter)
}

/// Each command that asks a running process.
const ASKING: [(&[&str], &[&str]); 8] = [
    (&["status"], &[]),
    (&["status", "--json"], &[]),
    (&["explain", "--watch", "0"], &[]),
    (&["path", "list"], &[]),
    (&["path", "set", "a", "--weight", "3"], &[]),
    (&["reload"], &[]),
    (&["run"], &["--", "true"]),
    (&["top", "--json"], &[]),
];

#[test]
fn no_command_believes_a_socket_of_another_user() {
    if !is_root() {
        return;
    }
    let proxy = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    proxy.set_nonblocking(true).unwrap();
    let address = proxy.local_addr().unwrap().to_string();
    let mut victim = Process(Command::new("sleep").arg("1000").spawn().unwrap());
    let runtime = tempfile::tempdir().unwrap();
    let own = runtime.path().join("sumrate");
    std::fs::create_dir(&own).unwrap();
    let socket = own.join("up-1.sock");
    let open = |mode| std::fs::set_permissions(&own, PermissionsExt::from_mode(mode)).unwrap();
    std::fs::set_permissions(&runtime, PermissionsExt::from_mode(0o711)).unwrap();
    open(0o777);
    let both = [socket.clone(), socket.with_extension("control")];
    let _squatters = both.map(|socket| squat(&socket, victim.0.id(), &address));
    // Somebody else's directory, one in which others could write, and a socket named by hand.
    let named = ["--socket", socket.to_str().unwrap()];
    for (owner, mode, arguments, reason) in [
        (NOBODY, 0o755, &[][..], "belongs to user 65534"),
        (0, 0o777, &[], "others can write to it"),
        (0, 0o755, &[], "is served by user 65534"),
        (0, 0o777, &named, "is served by user 65534"),
    ] {
        chown(&own, Some(owner), None).unwrap();
        open(mode);
        for (command, rest) in ASKING {
            let output = run(runtime.path(), &[command, arguments, rest].concat());
            let said = stderr(&output);
            assert!(!output.status.success(), "{command:?}: {output:?}");
            assert!(said.contains(reason), "{command:?}: {said}");
            let printed = String::from_utf8_lossy(&output.stdout);
            assert!(!said.contains("owned") && !printed.contains("owned"), "{output:?}");
        }
    }
    assert!(victim.0.try_wait().unwrap().is_none(), "it was signalled");
    let nobody = proxy.accept().unwrap_err();
    assert_eq!(nobody.kind(), std::io::ErrorKind::WouldBlock, "something was sent to the proxy");
}

#[test]
fn a_proxy_of_another_machine_is_not_used() {
    if !is_root() {
        return;
    }
    // Root asks whom it names, here the owner of a directory; its report leads elsewhere.
    let directory = tempfile::tempdir().unwrap();
    chown(&directory, Some(NOBODY), None).unwrap();
    let socket = directory.path().join("up-1.sock");
    let _squatter = squat(&socket, 1, "192.0.2.1:1080");
    let output =
        run(directory.path(), &["run", "--socket", socket.to_str().unwrap(), "--", "true"]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(stderr(&output).contains("192.0.2.1:1080 is not on this machine"), "{output:?}");
    let output = run(directory.path(), &["run", "--socks", "192.0.2.1:1080", "--", "true"]);
    assert!(stderr(&output).contains("is not on this machine"), "{output:?}");
    // What it says is shown without what would act on a terminal.
    let status = run(directory.path(), &["status", "--socket", socket.to_str().unwrap()]);
    let text = String::from_utf8(status.stdout).unwrap();
    assert!(
        text.starts_with("Client (process 1,") && text.contains("sumrate  ]0;owned \u{fffd}\n"),
        "{text:?}"
    );
    let status = run(directory.path(), &["status", "--json", "--socket", socket.to_str().unwrap()]);
    assert!(!status.stdout.contains(&0x1b) && !stderr(&status).contains('\u{1b}'), "{status:?}");
}

#[test]
fn a_daemon_says_who_took_the_directory_of_its_socket() {
    if !is_root() {
        return;
    }
    let runtime = tempfile::tempdir().unwrap();
    let own = runtime.path().join("sumrate");
    std::fs::create_dir(&own).unwrap();
    chown(&own, Some(NOBODY), None).unwrap();
    let mut command = sumrate(runtime.path());
    command.args(["serve", "--json", "--listen", "127.0.0.1:0", "--state"]);
    command.arg(runtime.path().join("state"));
    let log = tempfile::NamedTempFile::new().unwrap();
    let daemon = crate::harness::Daemon::start_with_log(command, log.reopen().unwrap().into());
    assert!(daemon.first["status_socket"].is_null(), "{}", daemon.first);
    let said = std::fs::read_to_string(log.path()).unwrap();
    assert!(said.contains("belongs to user 65534") && said.contains("cannot find"), "{said}");
    assert_eq!(std::fs::read_dir(&own).unwrap().count(), 0);
}

#[test]
fn roots_directory_is_not_where_others_make_theirs() {
    let unshare = || {
        let mut command = Command::new("unshare");
        command.args(["--user", "--map-root-user", "--mount"]);
        command
    };
    if !unshare().arg("true").status().is_ok_and(|status| status.success()) {
        return test_skip::skipped("the kernel refuses namespaces");
    }
    let place = tempfile::tempdir().unwrap();
    let open = place.path().join("open");
    for made in [&open, &open.join("sumrate")] {
        std::fs::create_dir(made).unwrap();
        std::fs::set_permissions(made, PermissionsExt::from_mode(0o1777)).unwrap();
    }
    // A /run of its own, so that nothing of this machine is touched.
    let script = "mount -t tmpfs -o mode=755 none /run \
                  && exec \"$1\" serve --json --listen 127.0.0.1:0 --state \"$2\"";
    for runtime in [None, Some("relative"), Some(open.to_str().unwrap())] {
        let mut command = unshare();
        command.args(["sh", "-c", script, "sh", env!("CARGO_BIN_EXE_sumrate")]);
        command.arg(place.path().join("state")).env_remove("XDG_RUNTIME_DIR");
        command.env_remove("NOTIFY_SOCKET").env_remove("SUMRATE_LOG");
        command.envs(runtime.map(|runtime| ("XDG_RUNTIME_DIR", runtime)));
        let daemon = crate::harness::Daemon::start(command);
        let socket = daemon.first["status_socket"].as_str().unwrap_or_default();
        assert!(socket.starts_with("/run/sumrate-root/serve-"), "{runtime:?}: {}", daemon.first);
    }
}

/// The program in a mount namespace of its own, behind a script that ends with `"$@"`; nothing where
/// the kernel refuses that.
fn in_namespace(script: &str, arguments: &[&str], home: &Path) -> Option<Output> {
    // Opened before the script hides the folder that it is in.
    let script = format!("exec 9<\"$1\"; shift; {script}");
    let output = Command::new("unshare")
        .args(["--mount", "sh", "-c", &script, "sh", env!("CARGO_BIN_EXE_sumrate")])
        .args(arguments)
        .env("HOME", home)
        .env_remove("XDG_RUNTIME_DIR")
        .env_remove("SUMRATE_LOG")
        .output()
        .unwrap();
    if stderr(&output).contains("unshare failed") {
        test_skip::skipped("the kernel refuses namespaces");
        return None;
    }
    Some(output)
}

#[test]
fn a_directory_in_tmp_that_others_made_is_an_error() {
    if !is_root() {
        return;
    }
    let script = "mount -t tmpfs -o mode=1777 none /tmp && mkdir /tmp/sumrate-65534 \
                  && chown 1000 /tmp/sumrate-65534 && exec setpriv --reuid 65534 --regid 65534 \
                  --clear-groups /proc/self/fd/9 \"$@\"";
    for arguments in [&["status"][..], &["reload"], &["path", "list"], &["run", "--", "true"]] {
        let Some(output) = in_namespace(script, arguments, Path::new("/nonexistent")) else {
            return;
        };
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {output:?}");
        let said = stderr(&output);
        assert!(said.contains("/tmp/sumrate-65534 belongs to user 1000"), "{arguments:?}: {said}");
    }
}

#[test]
fn no_library_is_loaded_from_a_home_of_another_user() {
    if !is_root() {
        return;
    }
    let home = tempfile::tempdir().unwrap();
    std::fs::set_permissions(&home, PermissionsExt::from_mode(0o755)).unwrap();
    let script = "mount -t tmpfs -o mode=755,noexec none /run && exec /proc/self/fd/9 \"$@\"";
    let run =
        || in_namespace(script, &["run", "--socks", "127.0.0.1:9", "--", "true"], home.path());
    let Some(own) = run() else { return };
    assert!(own.status.success(), "{own:?}");
    std::fs::remove_dir_all(home.path().join(".cache")).unwrap();
    chown(&home, Some(NOBODY), None).unwrap();
    let refused = run().unwrap();
    assert_eq!(refused.status.code(), Some(1), "{refused:?}");
    assert!(stderr(&refused).contains("belongs to user 65534"), "{refused:?}");
    assert!(!home.path().join(".cache").exists());
}

#[test]
fn an_event_log_follows_no_link() {
    let directory = tempfile::tempdir().unwrap();
    let (log, victim) = (directory.path().join("events"), directory.path().join("victim"));
    std::fs::write(&victim, "untouched").unwrap();
    std::os::unix::fs::symlink(&victim, &log).unwrap();
    let server = Server::start(&["--event-log", log.to_str().unwrap()]);
    drop(server);
    assert_eq!(std::fs::read_to_string(&victim).unwrap(), "untouched");
}
