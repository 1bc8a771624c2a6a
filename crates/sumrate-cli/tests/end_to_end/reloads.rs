//! What a reload leaves behind: sessions that still carry streams, and wishes for paths. What a client
//! waits for that is not there yet.

use std::fs::File;
use std::io::Read;
use std::process::{Output, Stdio};

use nix::sys::signal::Signal;
use serde_json::Value;

use crate::config_file::config;
use crate::graceful::{Halves, SECOND, wait_for_refusal};
use crate::harness::{Client, Daemon, Server, json, run, stderr, sumrate};
use crate::policies::{named, until};
use crate::schemas::conforms;

const PATHS: &str = "path = [\"wifi=127.0.0.1\", \"lte=127.0.0.2\"]\n";

/// A server, and a client that has its flags from a file.
struct Scene {
    client: Client,
    server: Server,
    link: String,
}

impl Scene {
    fn start(lines: &str) -> Self {
        Self::start_with_log(lines, |_| Stdio::inherit())
    }

    /// What the client logs goes to where `log` says.
    fn start_with_log(lines: &str, log: impl Fn(&Server) -> Stdio) -> Self {
        let server = Server::start(&["--allow", "127.0.0.0/8"]);
        let link = server.credential(&[]);
        let file = config(&server, &text(&link, lines));
        let mut command = sumrate(server.runtime());
        command.args(["up", "--json", "--config", file.to_str().unwrap()]);
        let client = Client { daemon: Daemon::start_with_log(command, log(&server)) };
        Self { client, server, link }
    }

    fn reload(&self, lines: &str) -> Value {
        config(&self.server, &text(&self.link, lines));
        let answer = json(&self.ask(&["reload", "--json"]));
        conforms("reload", &answer);
        answer
    }

    fn ask(&self, arguments: &[&str]) -> Output {
        let socket = self.client.status_socket();
        let output = [arguments, &["--socket", socket.to_str().unwrap()]].concat();
        let output = run(self.server.runtime(), &output);
        assert!(output.status.success(), "{arguments:?}: {}", stderr(&output));
        output
    }

    fn status(&self) -> Value {
        json(&self.ask(&["status", "--json"]))
    }

    fn server_status(&self) -> Value {
        let socket = self.server.daemon.first["status_socket"].as_str().unwrap();
        json(&run(self.server.runtime(), &["status", "--json", "--socket", socket]))
    }

    fn wait_for_both_paths(&self) {
        until(
            "both paths",
            || self.status(),
            |status| {
                let paths = status["sessions"][0]["paths"].as_array().unwrap();
                paths.iter().filter(|path| path["health"] == "active").count() == 2
            },
        );
    }
}

fn text(link: &str, lines: &str) -> String {
    let proxies = "socks = \"127.0.0.1:0\"\nhttp = \"127.0.0.1:0\"\ndrain = 60\n";
    format!("[up]\nlink = \"{link}\"\n{proxies}{lines}")
}

fn sessions(status: &Value) -> &Vec<Value> {
    status["sessions"].as_array().unwrap()
}

/// Whether a session has a path called lte with these values.
fn has_lte(session: &Value, values: &[(&str, Value)]) -> bool {
    let paths = session["paths"].as_array().unwrap();
    let fits = |path: &&Value| values.iter().all(|(key, value)| path[*key] == *value);
    paths.iter().filter(|path| path["name"] == "lte").any(|path| fits(&path))
}

#[test]
fn a_session_that_was_replaced_is_shown_and_changed_until_its_last_stream_ends() {
    let scene = Scene::start(PATHS);
    scene.wait_for_both_paths();
    let halves = Halves::start();
    let stream = halves.first_half(&scene.client);
    assert_eq!(scene.reload(&format!("{PATHS}linger = 31\n"))["applied"][0], "linger");
    let status = scene.status();
    conforms("status", &status);
    assert_eq!(sessions(&status).len(), 2, "{status:#}");
    let first = &scene.client.daemon.first["session"];
    assert_eq!(&sessions(&status)[1]["id"], first, "the newest comes first");
    assert_eq!(sessions(&status)[1]["streams"].as_array().unwrap().len(), 1);
    scene.ask(&["path", "set", "lte", "--weight", "3"]);
    let told = [("weight", Value::from(3))];
    until(
        "both sessions at the server",
        || scene.server_status(),
        |status| {
            let found = sessions(status);
            found.len() == 2 && found.iter().all(|session| has_lte(session, &told))
        },
    );
    assert_eq!(halves.second_half(stream).unwrap(), SECOND);
    until("one session", || scene.status(), |status| sessions(status).len() == 1);
    until("one at the server", || scene.server_status(), |status| sessions(status).len() == 1);
}

#[test]
fn a_session_that_was_replaced_uses_up_the_quota_and_leaves_its_path() {
    const HALF: usize = 6 << 20;
    // The other path is slow, so that this one has its part.
    let lines = format!("{PATHS}policy = [\"wifi=rate=40M\", \"lte=quota=300k\"]\n");
    let scene = Scene::start(&lines);
    scene.wait_for_both_paths();
    let halves = Halves::with(vec![7; 2 * HALF]);
    let mut stream = halves.first_half(&scene.client);
    scene.reload(&format!("{lines}linger = 31\n"));
    halves.go_on();
    stream.read_exact(&mut vec![0; HALF]).unwrap();
    // The stream waits for its reader meanwhile.
    let dead = [("health", Value::from("dead")), ("why", Value::from("quota"))];
    let status = until(
        "the quota is spent",
        || scene.status(),
        |status| {
            sessions(status).len() == 2
                && sessions(status).iter().all(|found| has_lte(found, &dead))
        },
    );
    let quota = &named(&sessions(&status)[0]["paths"], "lte")["quota"];
    assert!(quota["used_bytes"].as_u64().unwrap() >= 300_000, "{quota}");
    stream.read_exact(&mut vec![0; HALF]).unwrap();
}

#[test]
fn a_stop_waits_for_the_streams_of_a_session_that_was_replaced() {
    let mut scene = Scene::start(PATHS);
    let halves = Halves::start();
    let stream = halves.first_half(&scene.client);
    scene.reload(&format!("{PATHS}linger = 31\n"));
    scene.client.daemon.signal(Signal::SIGTERM);
    wait_for_refusal(&scene.client.socks());
    assert_eq!(halves.second_half(stream).unwrap(), SECOND);
    assert_eq!(scene.client.daemon.wait().code(), Some(0));
    scene.client.daemon.wait_for("stopped");
}

#[test]
fn a_reload_makes_a_path_a_backup_and_leaves_what_was_wished_for_it() {
    let policy = "policy = \"lte=weight=3\"\n";
    let scene = Scene::start(&format!("{PATHS}{policy}"));
    scene.wait_for_both_paths();
    let backup = PATHS.replace("127.0.0.2", "127.0.0.2,backup");
    assert_eq!(scene.reload(&format!("{backup}{policy}"))["applied"][0], "path");
    let wanted = [("priority", Value::from("backup")), ("weight", Value::from(3))];
    assert!(has_lte(&sessions(&scene.status())[0], &wanted), "{:#}", scene.status());
    until(
        "the server",
        || scene.server_status(),
        |status| sessions(status).len() == 1 && has_lte(&sessions(status)[0], &wanted),
    );
}

#[test]
fn an_interface_that_is_not_there_keeps_nobody_from_starting_and_reloading() {
    let lines = "path = [\"wifi=127.0.0.1\", \"lte=nosuch0,backup\"]\n";
    let log = |server: &Server| server.runtime().join("log");
    let scene = Scene::start_with_log(lines, |server| File::create(log(server)).unwrap().into());
    let said = std::fs::read_to_string(log(&scene.server)).unwrap();
    assert!(said.contains("path lte: there is no interface nosuch0"), "{said}");
    assert!(said.contains("the path is used when it appears"), "{said}");
    assert_eq!(scene.reload(&format!("{lines}linger = 31\n"))["applied"][0], "linger");
    let web = crate::web::start("127.0.0.1");
    let fetched = scene.client.curl_socks(&[&format!("http://{web}/1000")]);
    assert_eq!(fetched.stdout, crate::web::body(1000), "{}", stderr(&fetched));
    // A measurement that lacks a path would measure something else.
    let paths = ["--path", "wifi=127.0.0.1", "--path", "lte=nosuch0"];
    let bench = [&["bench", scene.link.as_str(), "--bytes", "1Mi"][..], &paths].concat();
    let bench = run(scene.server.runtime(), &bench);
    assert_eq!(bench.status.code(), Some(2), "{}", stderr(&bench));
}

#[test]
fn a_reload_without_any_quota_left_names_the_command_that_raises_one() {
    let lines = "path = \"lte=127.0.0.2\"\npolicy = \"lte=quota=1k\"\n";
    let scene = Scene::start(lines);
    let web = crate::web::start("127.0.0.1");
    scene.client.curl_socks(&["-o", "/dev/null", &format!("http://{web}/100000")]);
    let spent = |status: &Value| status["outage"]["quotas_spent"] == true;
    until("the quota is used up", || scene.status(), spent);
    config(&scene.server, &text(&scene.link, &format!("{lines}linger = 31\n")));
    let socket = scene.client.status_socket();
    let refused = run(scene.server.runtime(), &["reload", "--socket", socket.to_str().unwrap()]);
    assert_eq!(refused.status.code(), Some(1));
    let said = stderr(&refused);
    assert!(said.contains("nothing was changed: every path has used up its quota (lte)"), "{said}");
    assert!(said.contains("`sumrate path set lte --quota BYTES`"), "{said}");
}

#[test]
fn the_second_client_on_a_state_directory_says_who_keeps_the_account() {
    let state = tempfile::tempdir().unwrap();
    let lines =
        format!("{PATHS}policy = \"lte=metered\"\nstate = \"{}\"\n", state.path().display());
    let first = Scene::start(&lines);
    let log = |server: &Server| server.runtime().join("log");
    let second = Scene::start_with_log(&lines, |server| File::create(log(server)).unwrap().into());
    let said = std::fs::read_to_string(log(&second.server)).unwrap();
    let holder = format!("process {} counts", first.client.daemon.id());
    assert!(said.contains(&holder), "{said}");
}
