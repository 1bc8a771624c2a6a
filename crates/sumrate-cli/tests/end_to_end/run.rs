//! `sumrate run`: commands fail where the proxy, the names or the configuration are missing.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;

use rustix::fs::inotify;
use tempfile::TempDir;

use crate::harness::{PATIENCE, Server, sumrate};

/// A runtime directory, and a proxy that takes connections and says nothing.
struct Place {
    directory: TempDir,
    proxy: TcpListener,
}

/// Prints the file with the names of the command.
const FILE: &str = "f=${SUMRATE_PRELOAD##*names=}; f=${f%% *}; echo $f; ";

impl Place {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        std::fs::set_permissions(directory.path(), PermissionsExt::from_mode(0o700)).unwrap();
        Self { directory, proxy: TcpListener::bind("127.0.0.1:0").unwrap() }
    }

    fn command(&self, options: &[&str], script: &str) -> Command {
        let mut command = sumrate(self.directory.path());
        command.env("HOME", self.directory.path()).env_remove("LD_PRELOAD");
        command.env("XDG_RUNTIME_DIR", self.directory.path());
        let proxy = self.proxy.local_addr().unwrap().to_string();
        command.args(["run", "--socks", &proxy]).args(options);
        command.args(["--", "sh", "-c", script]);
        // The greeting of `run` is answered; what its command says is not.
        let listener = self.proxy.try_clone().unwrap();
        std::thread::spawn(move || {
            let (mut greeting, _) = listener.accept().unwrap();
            greeting.write_all(b"\x05\x00").unwrap();
        });
        command
    }

    fn run(&self, script: &str) -> (String, String) {
        self.run_with(&[], script)
    }

    fn run_with(&self, options: &[&str], script: &str) -> (String, String) {
        let output = self.command(options, script).output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        (text(output.stdout), text(output.stderr))
    }
}

fn wait_until_gone(path: &Path) {
    let watch = inotify::init(inotify::CreateFlags::CLOEXEC).unwrap();
    let removals = inotify::WatchFlags::DELETE | inotify::WatchFlags::MOVED_FROM;
    inotify::add_watch(&watch, path.parent().unwrap(), removals).unwrap();
    let (sender, removed) = mpsc::channel();
    std::thread::spawn(move || {
        let mut watch = File::from(watch);
        while watch.read(&mut [0; 4096]).is_ok() && sender.send(()).is_ok() {}
    });
    while path.exists() {
        assert!(removed.recv_timeout(PATIENCE).is_ok(), "{} stays", path.display());
    }
}

#[test]
fn the_names_of_a_command_go_with_it() {
    let place = Place::new();
    let script = format!("{FILE} test -f $f && getent ahostsv4 far.example");
    let (said, errors) = place.run(&script);
    assert!(said.contains("198.1"), "{said} {errors}");
    wait_until_gone(Path::new(said.lines().next().unwrap()));
}

#[test]
fn names_stay_while_a_process_has_them() {
    let place = Place::new();
    let script = format!(
        "{FILE} exec 3<&0; sh -c 'read go; getent ahostsv4 far.example; read go' <&3 2>/dev/null &"
    );
    let mut command = place.command(&[], &script);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut input = child.stdin.take().unwrap();
    let file = PathBuf::from(lines.next().unwrap().unwrap());
    assert!(child.wait().unwrap().success());
    input.write_all(b"go\n").unwrap();
    let resolved = lines.next().unwrap().unwrap();
    assert!(resolved.starts_with("198.1"), "a program that is started later: {resolved}");
    assert!(file.exists());
    drop(input);
    wait_until_gone(&file);
}

#[test]
fn left_over_names_are_cleared_by_run_and_up() {
    let place = Place::new();
    let own = place.directory.path().join("sumrate");
    std::fs::create_dir(&own).unwrap();
    std::fs::set_permissions(&own, PermissionsExt::from_mode(0o700)).unwrap();
    let left = own.join("names-4294967295-0");
    std::fs::write(&left, "secret.example").unwrap();
    place.run("true");
    assert!(!left.exists(), "by run");
    let server = Server::start(&[]);
    let own = server.runtime().join("sumrate");
    std::fs::create_dir_all(&own).unwrap();
    let left = own.join("names-4294967295-0");
    std::fs::write(&left, "secret.example").unwrap();
    let _client = server.client(&[]);
    assert!(!left.exists(), "by up");
}

#[test]
fn names_without_a_table_are_resolved_nowhere() {
    for (damage, reason) in [
        ("rm $f", "gone or damaged"),
        ("truncate -s 100 $f", "gone or damaged"),
        ("chmod 644 $f", "gone or damaged"),
        (
            "size=$(stat -c %s $f); head -c $size /dev/zero | tr '\\0' '\\1' > $f",
            "which is the most",
        ),
    ] {
        let place = Place::new();
        let script = format!("{FILE} {damage}; getent ahostsv4 far.example; echo $?");
        let (said, errors) = place.run(&script);
        assert_eq!(said.lines().nth(1), Some("2"), "{damage}: {said} {errors}");
        assert!(errors.contains(reason), "{damage}: {errors}");
    }
}

#[test]
fn a_command_without_its_variable_reaches_nothing() {
    let place = Place::new();
    for change in ["env -u SUMRATE_PRELOAD", "env SUMRATE_PRELOAD=rubbish"] {
        let script = format!(
            "{change} getent ahostsv4 far.example; echo $?; \
             {change} curl -sS --noproxy '*' --max-time 20 http://192.0.2.1/; echo $?"
        );
        let (said, errors) = place.run(&script);
        assert_eq!(said, "2\n7\n", "{errors}");
        assert!(errors.contains("SUMRATE_PRELOAD is missing"), "{errors}");
    }
}

#[test]
fn programs_that_leave_are_named_or_refused() {
    let place = Place::new();
    let (said, errors) = place.run("env -i sh -c 'echo went on'");
    assert_eq!(said, "went on\n");
    assert!(errors.contains("is started without LD_PRELOAD"), "{errors}");
    let (said, errors) = place.run_with(&["--strict"], "env -i sh -c 'echo went on'");
    assert!(said.is_empty() && errors.contains("not started"), "{said} {errors}");
}

#[test]
fn a_password_stays_in_no_command_line() {
    let place = Place::new();
    let script = "cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' '\\n' | grep -c onlyher[e]";
    let (said, errors) = place.run_with(&["--socks-auth", "me:onlyhere"], script);
    assert_eq!(said, "0\n", "{errors}");
}

#[test]
fn a_program_of_another_user_is_named() {
    if !nix::unistd::geteuid().is_root() {
        return test_skip::skipped("only root can become another user");
    }
    let place = Place::new();
    let (said, errors) = place.run("setpriv --reuid 65534 --clear-groups true; echo $?");
    assert_eq!(said, "0\n", "{errors}");
    assert!(errors.contains("may not read the library"), "{errors}");
}

#[test]
fn a_proxy_that_is_gone_is_not_passed_by() {
    let server = Server::start(&[]);
    let mut client = server.client(&[]);
    let mut command = sumrate(server.runtime());
    command.args(["run", "--socks", &client.socks(), "--", "sh", "-c"]);
    let curl = "curl -sS --noproxy '*' --max-time 20";
    command.arg(format!(
        "echo ready; read go; {curl} http://192.0.2.1/; echo $?; {curl} http://far.example/; echo $?"
    ));
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    said.read_line(&mut line).unwrap();
    assert_eq!(line, "ready\n");
    client.daemon.signal(nix::sys::signal::Signal::SIGKILL);
    client.daemon.wait();
    child.stdin.take().unwrap().write_all(b"go\n").unwrap();
    let (mut rest, mut errors) = (String::new(), String::new());
    said.read_to_string(&mut rest).unwrap();
    child.stderr.take().unwrap().read_to_string(&mut errors).unwrap();
    assert!(child.wait().unwrap().success());
    assert_eq!(rest, "7\n7\n", "curl cannot connect: {errors}");
    assert!(!errors.contains("resolve"), "the name was not asked for here: {errors}");
}
