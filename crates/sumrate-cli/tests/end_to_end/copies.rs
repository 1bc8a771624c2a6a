//! `sumrate cp`, with either end killed in the middle, of files and of trees.

use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Output, Stdio};
use std::time::Instant;

use nix::sys::signal::Signal;
use serde_json::Value;
use tempfile::TempDir;

use crate::config_file::config;
use crate::harness::{PATIENCE, Server, json, run, stderr, sumrate};
use crate::schemas::conforms;
use crate::web::body;

/// A server that offers a directory, and a directory at the client.
struct Files {
    server: Server,
    offered: TempDir,
    own: TempDir,
    link: String,
}

impl Files {
    fn start(access: &str) -> Self {
        let offered = tempfile::tempdir().unwrap();
        let server = Server::start(&["--files", offered.path().to_str().unwrap()]);
        let link = server.credential(&["--files", access]);
        Self { server, offered, own: tempfile::tempdir().unwrap(), link }
    }

    fn arguments(&self) -> Vec<String> {
        vec!["--files".to_owned(), self.offered.path().display().to_string()]
    }

    fn there(&self, name: &str) -> PathBuf {
        self.offered.path().join(name)
    }

    fn here(&self, name: &str) -> PathBuf {
        self.own.path().join(name)
    }

    fn write_here(&self, name: &str, content: &[u8]) -> String {
        std::fs::create_dir_all(self.here(name).parent().unwrap()).unwrap();
        std::fs::write(self.here(name), content).unwrap();
        self.here(name).to_str().unwrap().to_owned()
    }

    fn at(&self, path: &str) -> String {
        format!("{}:{path}", self.link)
    }

    fn cp(&self, arguments: &[&str]) -> Output {
        run(self.server.runtime(), &[&["cp"], arguments].concat())
    }

    fn cp_json(&self, arguments: &[&str]) -> Value {
        let output = self.cp(&[&["--json"], arguments].concat());
        assert!(output.status.success(), "{}", stderr(&output));
        let last = String::from_utf8(output.stdout).unwrap();
        let done: Value = serde_json::from_str(last.lines().last().unwrap()).unwrap();
        conforms("cp", &done);
        assert_eq!(done["event"], "done");
        done
    }

    /// A copy that is slow enough to be interrupted.
    fn start_slowly(&self, arguments: &[&str]) -> Child {
        let mut command = sumrate(self.server.runtime());
        command.args(["cp", "--limit", "3Mi"]).args(arguments);
        command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    }
}

/// Waits until a file has grown beyond so many bytes.
fn wait_for(partial: &Path, bytes: u64) {
    let begun = Instant::now();
    while !std::fs::metadata(partial).is_ok_and(|found| found.len() > bytes) {
        assert!(begun.elapsed() < PATIENCE, "{} does not grow", partial.display());
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}

fn kill(child: &mut Child) {
    child.kill().unwrap(); // SIGKILL
    child.wait().unwrap();
}

const LARGE: usize = 12 << 20;

#[test]
fn there_and_back() {
    let files = Files::start("rw");
    let large = body(3 << 20 | 17);
    files.write_here("tree/large", &large);
    files.write_here("tree/sub/small", b"small");
    let tree = files.here("tree");
    let done = files.cp_json(&[tree.to_str().unwrap(), &files.at("")]);
    assert_eq!((&done["files"], &done["failed"]), (&2.into(), &0.into()), "{done}");
    assert_eq!(std::fs::read(files.there("tree/large")).unwrap(), large);
    let times = |path: PathBuf| {
        let found = std::fs::metadata(path).unwrap();
        (found.mode(), found.mtime(), found.mtime_nsec())
    };
    assert_eq!(times(files.there("tree/sub/small")), times(files.here("tree/sub/small")));
    assert_eq!(times(files.there("tree/sub")), times(files.here("tree/sub")));
    let again = files.cp_json(&[tree.to_str().unwrap(), &files.at("")]);
    assert_eq!((&again["sent_bytes"], &again["unchanged_files"]), (&0.into(), &2.into()));
    let back = files.here("back");
    let done = files.cp_json(&[&files.at("tree"), back.to_str().unwrap()]);
    assert_eq!(done["sent_bytes"], large.len() + 5, "{done}");
    assert_eq!(std::fs::read(back.join("large")).unwrap(), large);
    assert_eq!(times(back.join("sub")), times(files.here("tree/sub")));
    // Several, and into a directory that is made.
    let into = format!("{}/", files.here("into").display());
    files.cp_json(&[&files.at("tree/large"), &files.at("tree/sub"), &into]);
    assert!(files.here("into/large").is_file() && files.here("into/sub/small").is_file());
}

#[test]
fn a_name_of_the_configuration_is_a_host() {
    let files = Files::start("ro");
    std::fs::write(files.there("f"), "content").unwrap();
    let text = format!("[hosts]\nhome = \"{}\"\n[cp]\nlimit = \"100M\"\n", files.link);
    let path = config(&files.server, &text);
    let to = files.here("copy");
    let output = files.cp(&["--config", path.to_str().unwrap(), "home:f", to.to_str().unwrap()]);
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(std::fs::read(to).unwrap(), b"content");
    let output = files.cp(&["--config", path.to_str().unwrap(), "work:f", "."]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("names home"), "{}", stderr(&output));
}

#[test]
fn a_second_copy_of_the_same_file_waits_for_the_first() {
    let files = Files::start("rw");
    let from = files.write_here("f", &body(LARGE));
    let mut copy = files.start_slowly(&[&from, &files.at("f")]);
    wait_for(&files.there(".f.sumrate-part"), 1 << 20);
    let second = files.cp(&[&from, &files.at("f")]);
    assert_eq!(second.status.code(), Some(1));
    let said = String::from_utf8(second.stdout).unwrap();
    assert!(said.contains("another copy is writing it"), "{said}");
    assert!(copy.wait().unwrap().success());
    assert_eq!(std::fs::read(files.there("f")).unwrap(), body(LARGE));
}

#[test]
fn a_killed_client_goes_on_where_it_stopped() {
    let files = Files::start("rw");
    let content = body(LARGE);
    let from = files.write_here("f", &content);
    let mut copy = files.start_slowly(&[&from, &files.at("f")]);
    wait_for(&files.there(".f.sumrate-part"), 4 << 20);
    kill(&mut copy);
    assert!(!files.there("f").exists());
    let done = files.cp_json(&[&from, &files.at("f")]);
    assert_eq!(std::fs::read(files.there("f")).unwrap(), content);
    let sent = done["sent_bytes"].as_u64().unwrap();
    assert!(sent <= (LARGE - (4 << 20)) as u64 && sent > 0, "{done}");
    assert_eq!(std::fs::read_dir(files.offered.path()).unwrap().count(), 1);
    // And the other way.
    let to = files.here("back");
    let mut copy = files.start_slowly(&[&files.at("f"), to.to_str().unwrap()]);
    wait_for(&files.here(".back.sumrate-part"), 4 << 20);
    kill(&mut copy);
    let done = files.cp_json(&[&files.at("f"), to.to_str().unwrap()]);
    assert_eq!(std::fs::read(&to).unwrap(), content);
    let sent = done["sent_bytes"].as_u64().unwrap();
    assert!(sent <= (LARGE - (4 << 20)) as u64 && sent > 0, "{done}");
}

#[test]
fn a_copy_outlives_its_killed_server() {
    for to_server in [true, false] {
        let mut files = Files::start("rw");
        let content = body(LARGE);
        let from = files.write_here("f", &content);
        std::fs::write(files.there("f"), &content).unwrap();
        let (here, there) = (files.here("copy"), files.at("copy"));
        let (mut copy, partial, result) = if to_server {
            let copy = files.start_slowly(&["--retry", "60", &from, &there]);
            (copy, files.there(".copy.sumrate-part"), files.there("copy"))
        } else {
            let copy =
                files.start_slowly(&["--retry", "60", &files.at("f"), here.to_str().unwrap()]);
            (copy, files.here(".copy.sumrate-part"), here)
        };
        wait_for(&partial, 4 << 20);
        let arguments = files.arguments();
        files.server.restart(&arguments.iter().map(String::as_str).collect::<Vec<_>>());
        assert!(copy.wait().unwrap().success(), "to the server: {to_server}");
        assert_eq!(std::fs::read(result).unwrap(), content);
    }
}

/// A tree to copy to a new name, and what it is to be there.
fn tree(files: &Files, to_server: bool, large: &[u8]) -> (String, String, PathBuf) {
    let from = if to_server { files.here("tree") } else { files.there("tree") };
    std::fs::create_dir_all(from.join("sub")).unwrap();
    for (name, content) in [("a", &b"first"[..]), ("large", large), ("sub/z", b"last")] {
        std::fs::write(from.join(name), content).unwrap();
    }
    if to_server {
        (from.to_str().unwrap().to_owned(), files.at("new"), files.there("new"))
    } else {
        (files.at("tree"), files.here("new").to_str().unwrap().to_owned(), files.here("new"))
    }
}

/// The tree is in its place, whole, and nothing else.
fn is_whole(tree: &Path, large: &[u8]) {
    let entries = std::fs::read_dir(tree).unwrap().map(|entry| entry.unwrap().file_name());
    let mut names: Vec<_> = entries.collect();
    names.sort();
    assert_eq!(names, ["a", "large", "sub"]);
    assert_eq!(std::fs::read(tree.join("large")).unwrap(), large);
    assert_eq!(std::fs::read(tree.join("sub/z")).unwrap(), b"last");
}

#[test]
fn a_tree_of_a_new_name_is_gone_on_with_by_the_same_command() {
    for to_server in [true, false] {
        let files = Files::start("rw");
        let content = body(LARGE);
        let (from, to, new) = tree(&files, to_server, &content);
        let mut copy = files.start_slowly(&[&from, &to]);
        wait_for(&new.join(".large.sumrate-part"), 4 << 20);
        kill(&mut copy);
        let done = files.cp_json(&[&from, &to]);
        is_whole(&new, &content);
        let sent = done["sent_bytes"].as_u64().unwrap();
        assert!(sent <= (LARGE - (4 << 20) + 10) as u64 && sent > 0, "{done}");
        // It is finished: now the name is that of a directory to copy into.
        files.cp_json(&[&from, &to]);
        is_whole(&new.join("tree"), &content);
    }
}

#[test]
fn a_tree_of_a_new_name_outlives_its_killed_server() {
    for to_server in [true, false] {
        let mut files = Files::start("rw");
        let content = body(LARGE);
        let (from, to, new) = tree(&files, to_server, &content);
        let mut copy = files.start_slowly(&["--retry", "60", &from, &to]);
        wait_for(&new.join(".large.sumrate-part"), 4 << 20);
        let arguments = files.arguments();
        files.server.restart(&arguments.iter().map(String::as_str).collect::<Vec<_>>());
        assert!(copy.wait().unwrap().success(), "to the server: {to_server}");
        is_whole(&new, &content);
    }
}

#[test]
fn ctrl_c_ends_a_copy() {
    let files = Files::start("rw");
    let from = files.write_here("f", &body(LARGE));
    let mut copy = files.start_slowly(&[&from, &files.at("f")]);
    wait_for(&files.there(".f.sumrate-part"), 1 << 20);
    let pid = nix::unistd::Pid::from_raw(copy.id().try_into().unwrap());
    nix::sys::signal::kill(pid, Signal::SIGINT).unwrap();
    assert_eq!(copy.wait().unwrap().code(), Some(130));
    assert!(!files.there("f").exists());
}

#[test]
fn nothing_is_copied_unless_it_is_allowed() {
    let closed = Server::start(&[]);
    let link = closed.credential(&["--files", "rw"]);
    let output = run(closed.runtime(), &["cp", &format!("{link}:f"), "."]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("serve --files"), "{}", stderr(&output));
    let files = Files::start("ro");
    std::fs::write(files.there("f"), "x").unwrap();
    let from = files.write_here("g", b"y");
    let output = files.cp(&[&from, &files.at("g")]);
    assert!(stderr(&output).contains("not write"), "{}", stderr(&output));
    let none = files.server.credential(&[]);
    let output = files.cp(&[&format!("{none}:f"), "."]);
    assert!(stderr(&output).contains("may copy no files"), "{}", stderr(&output));
    assert_eq!(std::fs::read_dir(files.offered.path()).unwrap().count(), 1);
}

#[test]
fn nothing_outside_the_directory_is_read_or_written() {
    let files = Files::start("rw");
    let secret = files.write_here("secret", b"secret");
    symlink(files.own.path(), files.there("out")).unwrap();
    symlink(&secret, files.there("file")).unwrap();
    let to = files.here("stolen");
    for path in ["out/secret", "file", "../secret", "/etc/passwd", "out", "x/../../y"] {
        let output = files.cp(&[&files.at(path), to.to_str().unwrap()]);
        assert_ne!(output.status.code(), Some(0), "{path}");
        assert!(!to.exists(), "{path}");
    }
    let from = files.write_here("evil", b"evil");
    for path in ["out/secret", "out/", "out/new", "out", "file", "../x", "/tmp/x"] {
        let output = files.cp(&[&from, &files.at(path)]);
        assert_ne!(output.status.code(), Some(0), "{path}");
    }
    assert_eq!(std::fs::read(&secret).unwrap(), b"secret");
    let mut names: Vec<_> = std::fs::read_dir(files.own.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    names.sort();
    assert_eq!(names, ["evil", "secret"]);
}

/// Neither a link to elsewhere nor one to itself is followed or replaced.
#[test]
fn a_link_at_the_destination_is_named() {
    let files = Files::start("rw");
    let secret = files.write_here("secret", b"secret");
    let notes = files.write_here("notes", b"notes");
    std::fs::copy(&notes, files.there("notes")).unwrap();
    let (here, deep) = (files.here("to/new"), files.there("deep"));
    for directory in [here.parent().unwrap(), &deep] {
        std::fs::create_dir(directory).unwrap();
    }
    let out = files.own.path().to_str().unwrap();
    for target in [secret.as_str(), "../../secret", "new", out] {
        symlink(target, &here).unwrap();
        symlink(target, files.there("new")).unwrap();
        symlink(target, deep.join("new")).unwrap();
        let [notes, at] = [notes.as_str(), here.to_str().unwrap()];
        let copies = [
            (vec![files.at("notes"), at.to_owned()], "new"),
            (vec![notes.to_owned(), files.at("new")], "new"),
            (vec![notes.to_owned(), files.at("deep/new")], "deep/new"),
            (vec![notes.to_owned(), files.at("deep/new/x")], "deep/new"),
        ];
        for (operands, link) in copies {
            if target == out && operands[1] == at {
                continue; // a link to a directory is the user's own
            }
            let operands: Vec<&str> = operands.iter().map(String::as_str).collect();
            let output = files.cp(&operands);
            let said = stderr(&output);
            assert_ne!(output.status.code(), Some(0), "{operands:?} {target}: {said}");
            let expected = format!("{link} is a symbolic link that does not stay in its directory");
            assert!(said.contains(&expected), "{operands:?} {target}: {said}");
            assert!(!said.contains("again"), "{said}");
        }
        for link in [here.clone(), files.there("new"), deep.join("new")] {
            std::fs::remove_file(link).unwrap();
        }
    }
    assert_eq!(std::fs::read(&secret).unwrap(), b"secret");
}

#[test]
fn devices_are_refused_and_what_failed_is_said() {
    let files = Files::start("rw");
    let output = files.cp(&["/dev/null", &files.at("x")]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("neither a file nor a directory"), "{}", stderr(&output));
    files.write_here("tree/f", b"x");
    symlink("f", files.here("tree/link")).unwrap();
    let tree = files.here("tree");
    let output = files.cp(&["--json", tree.to_str().unwrap(), &files.at("")]);
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8(output.stdout).unwrap();
    let done: Value = serde_json::from_str(text.lines().rev().nth(1).unwrap()).unwrap();
    conforms("cp", &done);
    assert_eq!(done["failures"][0]["path"], "tree/link");
    assert!(files.there("tree/f").is_file());
    let missing = files.cp(&["--json", &files.at("nosuch"), files.own.path().to_str().unwrap()]);
    assert_eq!(missing.status.code(), Some(1));
}

/// Only a lower bound: a slow machine takes longer.
#[test]
fn a_limited_copy_takes_its_time_in_both_directions() {
    const BYTES: usize = 3 << 20;
    const LIMIT: usize = 2 << 20; // what `--limit 2Mi` says
    let files = Files::start("rw");
    let from = files.write_here("f", &body(BYTES));
    let back = files.here("back");
    for copy in [[from.as_str(), &files.at("f")], [&files.at("f"), back.to_str().unwrap()]] {
        let done = files.cp_json(&[&["--limit", "2Mi"], copy.as_slice()].concat());
        assert_eq!(done["sent_bytes"], BYTES, "{done}");
        let took = done["duration_s"].as_f64().unwrap();
        assert!(took >= 0.8 * BYTES as f64 / LIMIT as f64, "{copy:?}: {done}");
    }
    assert_eq!(std::fs::read(back).unwrap(), body(BYTES));
}

#[test]
fn a_quota_counts_copies() {
    let files = Files::start("rw");
    let link = files.server.credential(&["--files", "rw", "--quota", "1M"]);
    let from = files.write_here("f", &body(3 << 20));
    let output = files.cp(&["--retry", "0", &from, &format!("{link}:f")]);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert!(!files.there("f").exists());
    let listed = json(&run(
        files.server.runtime(),
        &[
            "credential",
            "list",
            "--json",
            "--state",
            files.server.runtime().join("state").to_str().unwrap(),
        ],
    ));
    conforms("credential", &listed);
}
