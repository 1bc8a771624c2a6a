//! How paths are used, changed at run time, explained, and stopped by a quota.

use std::io::{Read, Write};
use std::process::Output;

use serde_json::Value;

use crate::harness::{Client, Daemon, PATIENCE, Server, json, run, stderr, sumrate};
use crate::schemas::conforms;

/// Two paths over loopback addresses.
const PATHS: [&str; 4] = ["--path", "wifi=127.0.0.1", "--path", "lte=127.0.0.2"];

const EVERY_CLASS: &str = "conversational,interactive,streaming,background";

fn ask(server: &Server, client: &Client, arguments: &[&str]) -> Output {
    let socket = client.status_socket();
    run(server.runtime(), &[arguments, &["--socket", socket.to_str().unwrap()]].concat())
}

fn answer(server: &Server, client: &Client, arguments: &[&str]) -> Value {
    let output = ask(server, client, arguments);
    assert!(output.status.success(), "{arguments:?}: {}", stderr(&output));
    json(&output)
}

/// The path of this name in a list of paths.
pub(crate) fn named<'a>(paths: &'a Value, name: &str) -> &'a Value {
    paths.as_array().unwrap().iter().find(|path| path["name"] == name).unwrap()
}

/// Asks until the answer is right.
pub(crate) fn until(
    what: &str,
    mut ask: impl FnMut() -> Value,
    right: impl Fn(&Value) -> bool,
) -> Value {
    let begun = std::time::Instant::now();
    loop {
        let found = ask();
        if right(&found) {
            return found;
        }
        assert!(begun.elapsed() < PATIENCE, "{what}: {found:#}");
    }
}

fn server_path(server: &Server, name: &str) -> Value {
    let socket = server.daemon.first["status_socket"].as_str().unwrap();
    let status = json(&run(server.runtime(), &["status", "--json", "--socket", socket]));
    let paths = &status["sessions"][0]["paths"];
    let found = paths.as_array().and_then(|paths| paths.iter().find(|path| path["name"] == name));
    found.cloned().unwrap_or(Value::Null)
}

#[test]
fn a_running_client_uses_a_path_otherwise_and_the_server_knows() {
    let server = Server::start(&[]);
    let client = server.client(&[&PATHS[..], &["--policy", "wifi=weight=2"]].concat());
    until(
        "both paths",
        || answer(&server, &client, &["path", "list", "--json"]),
        |list| {
            list["paths"]
                .as_array()
                .unwrap()
                .iter()
                .filter(|path| path["health"] == "active")
                .count()
                == 2
        },
    );
    let set = ["path", "set", "lte", "--tier", "2", "--weight", "3", "--rate", "20M", "--metered"];
    let list = answer(&server, &client, &[&set[..], &["--json"]].concat());
    conforms("path", &list);
    let lte = named(&list["paths"], "lte");
    assert_eq!((&lte["priority"], &lte["weight"]), (&"backup2".into(), &3.into()));
    assert_eq!((&lte["rate_cap_mbps"], &lte["metered"]), (&20.0.into(), &true.into()));
    assert_eq!(named(&list["paths"], "wifi")["weight"], 2);
    let told = until("the server", || server_path(&server, "lte"), |path| path["weight"] == 3);
    assert_eq!((&told["priority"], &told["rate_cap_mbps"]), (&"backup2".into(), &20.0.into()));
    let explained = answer(&server, &client, &["explain", "lte", "--json", "--watch", "0.1"]);
    conforms("explain", &explained);
    let words = explained["paths"][0]["sentences"].to_string();
    assert!(words.contains("On standby (backup2) while wifi (primary) is active"), "{words}");
    let text =
        String::from_utf8(ask(&server, &client, &["explain", "--watch", "0"]).stdout).unwrap();
    assert!(text.contains("lte is idle") && text.contains("\n  On standby"), "{text}");
    let back =
        ["path", "set", "lte", "--priority", "primary", "--weight", "none", "--rate", "none"];
    answer(&server, &client, &[&back[..], &["--metered=false", "--json"]].concat());
    until("the server again", || server_path(&server, "lte"), |path| path["weight"].is_null());
    let table = String::from_utf8(ask(&server, &client, &["path", "list"]).stdout).unwrap();
    assert!(table.starts_with("path") && table.lines().count() == 3, "{table}");
}

#[test]
fn a_class_is_kept_off_a_path_at_both_ends_until_that_is_lifted() {
    let server = Server::start(&["--allow", "127.0.0.0/8"]);
    let web = crate::web::start("127.0.0.1");
    let rule = format!("{}=background", web.port());
    let with = ["--policy", "lte=never=background+streaming,metered", "--class-rule", &rule];
    let client = server.client(&[&PATHS[..], &with].concat());
    let list = || answer(&server, &client, &["path", "list", "--json"]);
    let active = |list: &Value| {
        let paths = list["paths"].as_array().unwrap();
        paths.iter().filter(|path| path["health"] == "active").count() == 2
    };
    let listed = until("both paths", list, active);
    conforms("path", &listed);
    let never = serde_json::json!(["streaming", "background"]);
    assert_eq!(named(&listed["paths"], "lte")["never"], never);
    assert_eq!(named(&listed["paths"], "wifi")["never"], serde_json::json!([]));
    assert_eq!(server_path(&server, "lte")["never"], never);
    let fetch = |bytes: usize| {
        let fetched = client.curl_socks(&["-o", "/dev/null", &format!("http://{web}/{bytes}")]);
        assert!(fetched.status.success(), "{}", stderr(&fetched));
        server_path(&server, "lte")
    };
    let carried = |path: &Value| {
        path["sent_bytes"].as_u64().unwrap() + path["redundant_bytes"].as_u64().unwrap()
    };
    // The session's own words go by all paths.
    let kept_off = fetch(4_000_000);
    assert!(carried(&kept_off) < 10_000, "{kept_off:#}");
    let explained = answer(&server, &client, &["explain", "lte", "--json", "--watch", "0"]);
    conforms("explain", &explained);
    let words = explained["paths"][0]["sentences"].to_string();
    let wanted = "never carries streaming or background (`sumrate path set lte --never none`";
    assert!(words.contains(wanted), "{words}");
    let table = String::from_utf8(ask(&server, &client, &["path", "list"]).stdout).unwrap();
    assert!(table.contains("never") && table.contains("streaming, background"), "{table}");
    let lifted = answer(&server, &client, &["path", "set", "lte", "--never", "none", "--json"]);
    assert_eq!(named(&lifted["paths"], "lte")["never"], serde_json::json!([]));
    assert_eq!(named(&lifted["paths"], "lte")["metered"], true, "the rest stays");
    // One loopback alone is as fast as two: the other is worth using where that is slow.
    answer(&server, &client, &["path", "set", "wifi", "--rate", "20M", "--json"]);
    until("the cap", || server_path(&server, "wifi"), |path| path["rate_cap_mbps"] == 20.0);
    until("it carries", || fetch(4_000_000), |path| carried(path) > 100_000);
    let set = ["path", "set", "wifi", "--never", "background,conversational", "--json"];
    let set = answer(&server, &client, &set);
    let both = serde_json::json!(["conversational", "background"]);
    assert_eq!(named(&set["paths"], "wifi")["never"], both);
    until("the server", || server_path(&server, "wifi"), |path| path["never"] == both);
}

#[test]
fn a_change_that_cannot_be_is_refused_and_changes_nothing() {
    let server = Server::start(&[]);
    let client = server.client(&PATHS);
    for (arguments, code, words) in [
        (&["path", "set", "sat", "--weight", "3"][..], 2, "there is no path sat; the paths are"),
        (&["path", "set", "lte"][..], 2, "required"),
        (&["path", "set", "lte", "--weight", "101"][..], 2, "1 to 100"),
        (&["path", "set", "lte", "--rate", "fast"][..], 2, "500k, 20M"),
        (&["path", "set", "lte", "--tier", "10"][..], 2, "backup2 to backup9"),
        (&["path", "set", "lte", "--never", "bulk"][..], 2, "`bulk` is not a class"),
        (&["path", "set", "lte", "--never", EVERY_CLASS][..], 2, "to leave it out"),
        (&["explain", "sat"][..], 2, "there is no path sat"),
    ] {
        let output = ask(&server, &client, arguments);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {}", stderr(&output));
        assert!(stderr(&output).contains(words), "{arguments:?}: {}", stderr(&output));
    }
    let serving = server.daemon.first["status_socket"].as_str().unwrap();
    let set = ["path", "set", "lte", "--weight", "3", "--socket", serving];
    let refused = run(server.runtime(), &set);
    assert!(stderr(&refused).contains("on the machine of `sumrate up`"), "{}", stderr(&refused));
    let link = server.link();
    for (policy, words) in [
        ("sat=backup", "there is no path sat"),
        ("lte=fast", "not a setting"),
        ("lte=never=background+", "`` is not a class"),
    ] {
        let up = [&["up", link.as_str(), "--socks", "127.0.0.1:0", "--policy", policy], &PATHS[..]]
            .concat();
        let output = run(server.runtime(), &up);
        assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
        assert!(stderr(&output).contains(words), "{}", stderr(&output));
    }
}

#[test]
fn a_client_that_downloads_says_why_the_other_end_sends_as_it_does() {
    let server = Server::start(&["--allow", "127.0.0.0/8"]);
    let web = crate::web::start("127.0.0.1");
    // Both are capped, so that a download lasts and needs both.
    let caps = ["--policy", "lte=rate=20M", "--policy", "wifi=rate=20M"];
    let client = server.client(&[&PATHS[..], &caps].concat());
    let proxy = format!("socks5h://{}", client.socks());
    let fetch = format!("curl -s -o /dev/null --proxy {proxy} http://{web}/20000000");
    let mut download = std::process::Command::new("sh")
        .args(["-c", &format!("while {fetch}; do :; done")])
        .spawn()
        .unwrap();
    let explained = until(
        "the cap, as the server says it",
        || answer(&server, &client, &["explain", "lte", "--json", "--watch", "0.3"]),
        |explained| {
            let words = explained["paths"][0]["sentences"].to_string();
            words.contains("The other end reports: its limit of 20.0 Mbit/s (`--rate`) is reached")
        },
    );
    conforms("explain", &explained);
    let socket = client.status_socket();
    let status = run(server.runtime(), &["status", "--json", "--socket", socket.to_str().unwrap()]);
    let status = json(&status);
    conforms("status", &status);
    let session = &status["sessions"][0];
    assert!(named(&session["paths"], "wifi")["far"]["why"].is_string(), "{session:#}");
    assert!(session["streams"].as_array().unwrap().len() <= 1, "who looks is no traffic");
    download.kill().unwrap();
    download.wait().unwrap();
    // The operator of the server sees whose session it is.
    let socket = server.daemon.first["status_socket"].as_str().unwrap();
    let status = json(&run(server.runtime(), &["status", "--json", "--socket", socket]));
    conforms("status", &status);
    assert_eq!(status["sessions"][0]["credential"], "first");
}

#[test]
fn a_path_out_of_quota_is_idle_until_there_is_more_and_after_a_restart() {
    let server = Server::start(&["--allow", "127.0.0.0/8"]);
    let web = crate::web::start("127.0.0.1");
    let state = server.runtime().join("client-state");
    let with = ["--policy", "lte=quota=300k,metered", "--state", state.to_str().unwrap()];
    let client = server.client(&[&PATHS[..], &with].concat());
    let list = |client: &Client| answer(&server, client, &["path", "list", "--json"]);
    let why = |list: &Value| named(&list["paths"], "lte")["why"].clone();
    let begun = std::time::Instant::now();
    while why(&list(&client)) != "quota" {
        assert!(begun.elapsed() < PATIENCE, "{:#}", list(&client));
        let fetched = client.curl_socks(&["-o", "/dev/null", &format!("http://{web}/4000000")]);
        assert!(fetched.status.success(), "{}", stderr(&fetched));
    }
    let spent = list(&client);
    conforms("path", &spent);
    assert_eq!(named(&spent["paths"], "lte")["health"], "dead", "nothing uses it");
    let explained = answer(&server, &client, &["explain", "lte", "--json", "--watch", "0"]);
    let words = explained["paths"][0]["sentences"].to_string();
    assert!(words.contains("its quota for") && words.contains("is used up"), "{words}");
    // What was used is kept, and counts for the next process.
    client.daemon.signal(nix::sys::signal::Signal::SIGTERM);
    client.daemon.wait_for("stopped");
    assert!(state.join("path-usage.json").exists());
    let again = server.client(&[&PATHS[..], &with].concat());
    let still = list(&again);
    let names = still["paths"].as_array().unwrap().iter().filter(|path| path["health"] == "active");
    assert_eq!(names.map(|path| path["name"].as_str().unwrap()).collect::<Vec<_>>(), ["wifi"]);
    let more = ["path", "set", "lte", "--quota", "10G", "--json"];
    let raised = answer(&server, &again, &more);
    assert!(named(&raised["paths"], "lte")["quota"]["used_bytes"].as_u64().unwrap() >= 300_000);
    until("it is back", || list(&again), |list| named(&list["paths"], "lte")["health"] == "active");
}

#[test]
fn a_disk_that_takes_no_account_stops_nothing() {
    let server = Server::start(&["--allow", "127.0.0.0/8"]);
    let web = crate::web::start("127.0.0.1");
    let state = server.runtime().join("client-state");
    std::fs::create_dir(&state).unwrap();
    let with = ["--policy", "lte=metered", "--state", state.to_str().unwrap()];
    let client = server.client(&[&PATHS[..], &with].concat());
    // In the way of the file: refused as on a full disk, by root's processes too.
    std::fs::create_dir(state.join("path-usage.json")).unwrap();
    let fetched = client.curl_socks(&["-o", "/dev/null", &format!("http://{web}/1000000")]);
    assert!(fetched.status.success(), "{}", stderr(&fetched));
    client.daemon.signal(nix::sys::signal::Signal::SIGTERM);
    client.daemon.wait_for("stopped");
}

/// What a client that asks for `target` is told, within a moment.
fn refusal(client: &Client, target: &str) -> String {
    let mut connection = std::net::TcpStream::connect(client.http()).unwrap();
    connection.set_read_timeout(Some(PATIENCE / 6)).unwrap();
    write!(connection, "CONNECT {target} HTTP/1.1\r\n\r\n").unwrap();
    let mut answer = String::new();
    connection.read_to_string(&mut answer).expect("an answer within 10 s");
    answer
}

#[test]
fn a_client_whose_quotas_are_all_used_up_says_so_and_refuses_at_once() {
    let server = Server::start(&["--allow", "127.0.0.0/8"]);
    let web = crate::web::start("127.0.0.1");
    let state = server.runtime().join("client-state");
    let log = server.runtime().join("client.log");
    let start = || {
        let mut command = sumrate(server.runtime());
        command.arg("up").arg(server.link());
        command.args(["--json", "--socks", "off", "--http", "127.0.0.1:0"]);
        command.args(["--path", "lte=127.0.0.2", "--policy", "lte=quota=300k", "--linger", "1"]);
        command.args(["--state", state.to_str().unwrap()]);
        let log = std::fs::File::create(&log).unwrap();
        Client { daemon: Daemon::start_with_log(command, log.into()) }
    };
    let client = start();
    let url = format!("http://{web}/400000");
    // It is cut off if what it carries is counted just then.
    client.curl_http(&["-o", "/dev/null", &url]);
    let status = |client: &Client| answer(&server, client, &["status", "--json"]);
    let spent = |status: &Value| status["outage"]["quotas_spent"] == true;
    until("the quota is used up", || status(&client), spent);
    // Also once the session is over.
    let no_session = |status: &Value| status["sessions"] == serde_json::json!([]);
    until("the session is over", || status(&client), no_session);
    says_that_quotas_are_used_up(&server, &client, &web.to_string());
    let said = std::fs::read_to_string(&log).unwrap();
    assert!(said.contains("every path has used up its quota (lte)"), "{said}");
    assert!(said.contains("`sumrate path set lte --quota BYTES`"), "{said}");
    client.daemon.signal(nix::sys::signal::Signal::SIGTERM);
    client.daemon.wait_for("stopped");
    drop(client);
    // A client that starts so is there, too, and has a session once the quota is raised.
    let again = start();
    conforms("up", &again.daemon.first);
    assert!(again.daemon.first["session"].is_null(), "{}", again.daemon.first);
    until("it is said", || status(&again), spent);
    says_that_quotas_are_used_up(&server, &again, &web.to_string());
    answer(&server, &again, &["path", "set", "lte", "--quota", "10G", "--json"]);
    conforms("up", &again.daemon.wait_for("session_restored"));
    until("it is over", || status(&again), |status| status["outage"].is_null());
    let fetched = again.curl_http(&["-o", "/dev/null", &url]);
    assert!(fetched.status.success(), "{}", stderr(&fetched));
}

/// In every view, and to whoever asks for a connection.
fn says_that_quotas_are_used_up(server: &Server, client: &Client, target: &str) {
    let status = answer(server, client, &["status", "--json"]);
    conforms("status", &status);
    let lte = named(&status["idle_paths"], "lte");
    assert_eq!((&lte["health"], &lte["why"]), (&"dead".into(), &"quota".into()));
    let why = lte["why_idle"].as_str().unwrap();
    assert!(why.starts_with("quota reached until 20") && why.contains("-01 (UTC): "), "{why}");
    let text =
        |arguments: &[&str]| String::from_utf8(ask(server, client, arguments).stdout).unwrap();
    let table = text(&["status"]);
    assert!(table.contains("every path has used up its quota (lte)"), "{table}");
    let paused = "paused (quota, until 20";
    assert!(table.contains(paused) && !table.contains("unreachable"), "{table}");
    let list = text(&["path", "list"]);
    assert!(list.contains(paused), "{list}");
    conforms("path", &answer(server, client, &["path", "list", "--json"]));
    let explained = answer(server, client, &["explain", "lte", "--json", "--watch", "0"]);
    conforms("explain", &explained);
    let words = explained["paths"][0]["sentences"].to_string();
    assert!(words.contains("its quota for") && words.contains("is used up"), "{words}");
    let words = explained["sentences"].to_string();
    assert!(words.contains("Every path has used up its quota (lte)"), "{words}");
    let refused = refusal(client, target);
    assert!(refused.starts_with("HTTP/1.1 502 "), "{refused}");
    assert!(refused.contains("every path has used up its quota (lte)"), "{refused}");
    assert!(refused.contains("`sumrate path set lte --quota BYTES`"), "{refused}");
}

#[test]
fn a_damaged_account_is_set_aside_and_keeps_nothing_from_starting() {
    let server = Server::start(&[]);
    let state = server.runtime().join("client-state");
    let (account, aside) = (state.join("path-usage.json"), state.join("path-usage.json.damaged"));
    std::fs::create_dir(&state).unwrap();
    std::fs::write(&account, "{\"schema\":\"sumrate.path-us").unwrap();
    let link = server.link();
    let up = |command: &mut std::process::Command| {
        command.args(["up", &link, "--json", "--socks", "127.0.0.1:0", "--state"]).arg(&state);
        command.args(PATHS).args(["--policy", "lte=quota=10G"]);
    };
    // Where it cannot be renamed nothing starts: nobody may take what is damaged for nothing.
    std::fs::create_dir(&aside).unwrap();
    let mut command = sumrate(server.runtime());
    up(&mut command);
    let refused = command.output().unwrap();
    assert_eq!(refused.status.code(), Some(2), "{}", stderr(&refused));
    for words in ["cannot be renamed to", "path-usage.json.damaged", "remove it to count from zero"]
    {
        assert!(stderr(&refused).contains(words), "{}", stderr(&refused));
    }
    std::fs::remove_dir(&aside).unwrap();
    let log = server.runtime().join("log");
    let mut command = sumrate(server.runtime());
    up(&mut command);
    let daemon = Daemon::start_with_log(command, std::fs::File::create(&log).unwrap().into());
    let client = Client { daemon };
    let list = answer(&server, &client, &["path", "list", "--json"]);
    assert_eq!(named(&list["paths"], "lte")["quota"]["limit_bytes"], 10_000_000_000u64);
    assert_eq!(std::fs::read_to_string(&aside).unwrap(), "{\"schema\":\"sumrate.path-us");
    let said = std::fs::read_to_string(&log).unwrap();
    for words in ["path-usage.json.damaged", "is damaged", "starts again at 0 bytes"] {
        assert!(said.contains(words), "{said}");
    }
}
