//! Starts the program and waits for the events that it prints.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, ExitStatus, Output, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use tempfile::TempDir;

/// A hung test fails after this time; nothing else is timed.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// The program with a runtime directory and no logging of its own.
pub(crate) fn sumrate(runtime: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sumrate"));
    command
        .env("XDG_RUNTIME_DIR", runtime)
        .env("XDG_STATE_HOME", runtime.join("state-home"))
        .env("XDG_CONFIG_HOME", runtime.join("config-home"))
        .env_remove("SUMRATE_LOG")
        .env_remove("NOTIFY_SOCKET")
        .env_remove("JOURNAL_STREAM")
        .env("COLUMNS", "100");
    command
}

/// Runs to the end.
pub(crate) fn run(runtime: &Path, arguments: &[&str]) -> Output {
    sumrate(runtime).args(arguments).output().unwrap()
}

/// A process that prints events, killed when dropped.
pub(crate) struct Daemon {
    child: Child,
    lines: mpsc::Receiver<String>,
    pub(crate) first: Value,
}

impl Daemon {
    /// Starts and waits for the first event.
    pub(crate) fn start(command: Command) -> Self {
        Self::start_with_log(command, Stdio::inherit())
    }

    /// The same, with what it logs sent elsewhere.
    pub(crate) fn start_with_log(mut command: Command, log: Stdio) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(log).spawn().unwrap();
        let lines = read_lines(child.stdout.take().unwrap());
        let mut daemon = Self { child, lines, first: Value::Null };
        daemon.first = daemon.next_event();
        daemon
    }

    pub(crate) fn next_event(&self) -> Value {
        let line = self.lines.recv_timeout(PATIENCE).expect("an event");
        serde_json::from_str(&line).unwrap()
    }

    /// Waits for an event of this name, past others.
    pub(crate) fn wait_for(&self, name: &str) -> Value {
        loop {
            let event = self.next_event();
            if event["event"] == name {
                return event;
            }
        }
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.child.id().try_into().unwrap()), signal).unwrap();
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// What it printed since the last event that was looked at; it has ended.
    pub(crate) fn rest(&self) -> String {
        std::iter::from_fn(|| self.lines.recv_timeout(PATIENCE).ok()).collect::<Vec<_>>().join("\n")
    }

    pub(crate) fn wait(&mut self) -> ExitStatus {
        self.child.wait().unwrap()
    }

    pub(crate) fn is_running(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }
}

fn read_lines(stdout: ChildStdout) -> mpsc::Receiver<String> {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        for line in BufReader::new(stdout).lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                break;
            }
        }
    });
    receiver
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A server and the directory of its state and of all sockets.
pub(crate) struct Server {
    pub(crate) daemon: Daemon,
    pub(crate) directory: TempDir,
}

impl Server {
    pub(crate) fn start(arguments: &[&str]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let daemon = Self::spawn(&directory, "127.0.0.1:0", arguments);
        Self { daemon, directory }
    }

    fn spawn(directory: &TempDir, listen: &str, arguments: &[&str]) -> Daemon {
        let mut command = sumrate(directory.path());
        command.args(["serve", "--json", "--listen", listen, "--state"]);
        command.arg(directory.path().join("state")).args(arguments);
        Daemon::start(command)
    }

    /// Kills the server and starts it again on the same port.
    pub(crate) fn restart(&mut self, arguments: &[&str]) {
        self.kill();
        self.start_again(arguments);
    }

    pub(crate) fn kill(&mut self) {
        self.daemon.signal(Signal::SIGKILL);
        self.daemon.wait();
    }

    /// Starts a server that was killed again, on the same port.
    pub(crate) fn start_again(&mut self, arguments: &[&str]) {
        let listen = self.listen();
        self.daemon = Self::spawn(&self.directory, &listen, arguments);
    }

    pub(crate) fn listen(&self) -> String {
        self.daemon.first["listen"][0].as_str().unwrap().to_owned()
    }

    pub(crate) fn link(&self) -> String {
        self.daemon.first["link"].as_str().unwrap().to_owned()
    }

    pub(crate) fn runtime(&self) -> &Path {
        self.directory.path()
    }

    /// A client with both proxies on free ports.
    /// Makes a credential with these limits; the link's place, as `up` and `bench` take it.
    pub(crate) fn credential(&self, limits: &[&str]) -> String {
        let state = self.runtime().join("state");
        let listen = self.listen();
        let add = ["credential", "add", "--advertise", &listen, "--name", "laptop", "--state"];
        let added = run(self.runtime(), &[&add[..], &[state.to_str().unwrap()], limits].concat());
        assert!(added.status.success(), "{}", stderr(&added));
        let file = self.runtime().join("link");
        std::fs::write(&file, &added.stdout).unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o600);
        std::fs::set_permissions(&file, mode).unwrap();
        format!("@{}", file.display())
    }

    pub(crate) fn client(&self, arguments: &[&str]) -> Client {
        self.client_with(&self.link(), arguments)
    }

    pub(crate) fn client_with(&self, link: &str, arguments: &[&str]) -> Client {
        let mut command = sumrate(self.runtime());
        command.args(["up", link, "--json", "--socks", "127.0.0.1:0", "--http"]);
        command.arg("127.0.0.1:0").args(arguments);
        Client { daemon: Daemon::start(command) }
    }
}

pub(crate) struct Client {
    pub(crate) daemon: Daemon,
}

impl Client {
    fn text(&self, key: &str) -> String {
        self.daemon.first[key].as_str().unwrap().to_owned()
    }

    pub(crate) fn socks(&self) -> String {
        self.text("socks")
    }

    pub(crate) fn http(&self) -> String {
        self.text("http")
    }

    pub(crate) fn status_socket(&self) -> PathBuf {
        self.text("status_socket").into()
    }

    /// curl over SOCKS5 with names resolved at the exit.
    pub(crate) fn curl_socks(&self, arguments: &[&str]) -> Output {
        let proxy = format!("socks5h://{}", self.socks());
        curl(&[&["--proxy", &proxy], arguments].concat())
    }

    /// curl over HTTP CONNECT.
    pub(crate) fn curl_http(&self, arguments: &[&str]) -> Output {
        let proxy = format!("http://{}", self.http());
        curl(&[&["--proxytunnel", "--proxy", &proxy], arguments].concat())
    }
}

pub(crate) fn curl(arguments: &[&str]) -> Output {
    Command::new("curl")
        .args(["--silent", "--show-error", "--noproxy", "", "--max-time", "50"])
        .args(arguments)
        .output()
        .expect("curl is needed for this test: install it")
}

pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

pub(crate) fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}
