//! The configuration file, as real commands read it.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use crate::harness::{Daemon, Server, json, run, stderr, sumrate};
use crate::schemas::conforms;

/// A file that nobody else may read, in the server's directory.
pub(crate) fn config(server: &Server, text: &str) -> PathBuf {
    let path = server.runtime().join("sumrate.toml");
    std::fs::write(&path, text).unwrap();
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o600)).unwrap();
    path
}

#[test]
fn up_takes_its_flags_from_the_file_and_the_command_line_wins() {
    let server = Server::start(&[]);
    let link = server.credential(&[]);
    let text = format!(
        "[up]\nlink = \"{link}\"\npath = \"filed=127.0.0.2\"\nsocks = \"127.0.0.1:0\"\njson = true\n"
    );
    let path = config(&server, &text);
    let start = |more: &[&str]| {
        let mut command = sumrate(server.runtime());
        command.args(["up", "--config", path.to_str().unwrap()]).args(more);
        Daemon::start(command).first["paths"][0]["name"].clone()
    };
    assert_eq!(start(&[]), "filed");
    assert_eq!(start(&["--path", "typed=127.0.0.1"]), "typed");
}

#[test]
fn the_users_file_is_found_and_none_leaves_it_out() {
    let server = Server::start(&[]);
    let home = server.runtime().join("config-home/sumrate");
    std::fs::create_dir_all(&home).unwrap();
    std::fs::write(home.join("config.toml"), "[up]\nlink = \"http://x\"\n").unwrap();
    let output = run(server.runtime(), &["up"]);
    assert!(stderr(&output).contains("sumrate://"), "{}", stderr(&output));
    let output = run(server.runtime(), &["up", "--config", "none"]);
    assert!(stderr(&output).contains("LINK"), "{}", stderr(&output));
}

#[test]
fn a_wrong_file_is_refused_before_anything_starts() {
    let server = Server::start(&[]);
    for (text, words) in [
        ("[up]\nsheduler = \"minrtt\"\n", [":2: ", "`scheduler`"]),
        ("[serve]\nlisten = \"nowhere\"\n", [":2: ", "nowhere"]),
        ("[up]\n\nlink = @l\n", [":3: ", ""]),
    ] {
        let path = config(&server, text);
        for command in [&["up", "@l", "--config"][..], &["config", "check"]] {
            let output = run(server.runtime(), &[command, &[path.to_str().unwrap()]].concat());
            assert_eq!(output.status.code(), Some(2));
            let said = stderr(&output);
            assert!(words.iter().all(|word| said.contains(word)), "{said}");
        }
    }
    let path = config(&server, "[up]\nlink = \"@nosuch\"\nuser = \"nobody\"\nsocks = \"x\"\n");
    let output = run(server.runtime(), &["config", "check", "--json", path.to_str().unwrap()]);
    conforms("error", &json(&output));
}

#[test]
fn right_files_and_examples() {
    let server = Server::start(&[]);
    let path =
        config(&server, "[hosts]\nhome = \"@home.link\"\n[serve]\nlisten = [\"[::]:7443\"]\n");
    let checked =
        json(&run(server.runtime(), &["config", "check", "--json", path.to_str().unwrap()]));
    conforms("config", &checked);
    assert_eq!(checked["hosts"][0], "home");
    let none = json(&run(server.runtime(), &["config", "check", "--json"]));
    assert!(none["file"].is_null() || none["file"] == "/etc/sumrate/config.toml", "{none}");
    let example = run(server.runtime(), &["config", "example"]);
    let written = config(&server, &String::from_utf8(example.stdout).unwrap());
    let output = run(server.runtime(), &["config", "check", written.to_str().unwrap()]);
    assert!(output.status.success(), "{}", stderr(&output));
}
