//! Servers that send other names than a copy asked for, and clients that ask for paths outside.

use std::path::{Path, PathBuf};
use std::process::Output;
use std::str::FromStr;

use fbdt::{
    Class, ClientConfig, Credential, Link, Listener, PathSpec, ServerConfig, ServerState, connect,
};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::runtime::Runtime;

use crate::harness::{Server, run, stderr};

/// A message of a sender: kind, length, body.
fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len()).unwrap();
    [&[kind], &length.to_be_bytes()[..], body].concat()
}

fn offer(id: u32, name: &str, is_directory: bool) -> Vec<u8> {
    let mut body = id.to_be_bytes().to_vec();
    body.push(u8::from(is_directory));
    body.extend(if is_directory { 0o700_u32 } else { 0o600 }.to_be_bytes());
    body.extend(u64::from(!is_directory).to_be_bytes()); // size
    body.extend([0; 12]); // last change
    message(2, &[&body, name.as_bytes()].concat())
}

/// A whole file of the byte `x`.
fn file(id: u32, name: &str) -> Vec<u8> {
    let hash = blake3::hash(b"x");
    let root = blake3::hash(hash.as_bytes());
    let data = [&id.to_be_bytes()[..], &[0; 8], hash.as_bytes(), b"x"].concat();
    let finish = [&id.to_be_bytes()[..], root.as_bytes()].concat();
    [offer(id, name, false), message(3, &data), message(4, &finish)].concat()
}

fn end() -> Vec<u8> {
    message(7, &[])
}

/// A server with the right key that answers every copy with the same bytes.
struct HostileServer {
    _runtime: Runtime,
    directory: TempDir,
    link: String,
}

impl HostileServer {
    fn start(said: Vec<u8>) -> Self {
        let runtime = Runtime::new().unwrap();
        let directory = tempfile::tempdir().unwrap();
        let state = ServerState::open(directory.path().join("state")).unwrap();
        let credential: Credential = state.new_credential("c", Default::default()).unwrap();
        let config = ServerConfig::new(state, vec!["127.0.0.1:0".parse().unwrap()]);
        let listener = runtime.block_on(Listener::bind(config)).unwrap();
        let link = listener.link(&credential).to_string_with_secret();
        runtime.spawn(async move {
            while let Ok(session) = listener.accept().await {
                let said = said.clone();
                tokio::spawn(async move {
                    while let Some(mut stream) = session.accept_stream().await {
                        // The request: kind, length, JSON. The answer: 0 and an empty message.
                        let _ = stream.read_u8().await;
                        let mut body = vec![0; stream.read_u16().await.unwrap_or(0).into()];
                        let _ = stream.read_exact(&mut body).await;
                        let answer = br#"{"message":""}"#;
                        let _ = stream.write_all(&[0, 0, answer.len() as u8]).await;
                        let _ = stream.write_all(answer).await;
                        let _ = stream.write_all(&said).await;
                        let mut answers = Vec::new();
                        let _ = stream.read_to_end(&mut answers).await;
                    }
                });
            }
        });
        Self { _runtime: runtime, directory, link }
    }

    fn home(&self) -> PathBuf {
        let home = self.directory.path().join("home");
        std::fs::create_dir_all(&home).unwrap();
        std::fs::write(home.join(".bashrc"), "own").unwrap();
        home
    }

    fn cp(&self, paths: &[&str], to: &Path) -> Output {
        let paths: Vec<String> = paths.iter().map(|path| format!("{}:{path}", self.link)).collect();
        let mut words = vec!["cp", "--config", "none"];
        words.extend(paths.iter().map(String::as_str));
        words.push(to.to_str().unwrap());
        run(self.directory.path(), &words)
    }
}

fn names(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).unwrap();
    let mut names: Vec<_> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn a_hostile_server_writes_only_what_was_asked_for() {
    for (said, paths, to, kept) in [
        ([file(0, ".bashrc"), end()].concat(), &["notes.txt"][..], "", &[".bashrc"][..]),
        (
            [offer(0, ".ssh", true), file(1, ".ssh/authorized_keys"), end()].concat(),
            &["notes.txt"],
            "",
            &[".bashrc"],
        ),
        (
            [file(0, "notes.txt"), file(1, ".bashrc"), end()].concat(),
            &["dir/notes.txt"],
            "",
            &[".bashrc", "notes.txt"],
        ),
        ([file(0, ".bashrc"), end()].concat(), &["a", "b/"], "", &[".bashrc"]),
        ([file(0, "copy"), end()].concat(), &["notes.txt"], "copy", &[".bashrc"]),
        ([offer(0, "notes.txt", false), file(1, "x")].concat(), &["notes.txt"], "", &[".bashrc"]),
    ] {
        let server = HostileServer::start(said);
        let home = server.home();
        let output = server.cp(paths, &home.join(to));
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        assert!(stderr(&output).contains("not asked for"), "{}", stderr(&output));
        assert!(!stderr(&output).contains("to go on"), "{}", stderr(&output));
        assert_eq!(names(&home), kept, "{}", stderr(&output));
        assert_eq!(std::fs::read(home.join(".bashrc")).unwrap(), b"own");
    }
}

#[test]
fn of_a_whole_directory_the_server_chooses_names() {
    let server = HostileServer::start([file(0, ".bashrc"), file(1, "new"), end()].concat());
    let home = server.home();
    let output = server.cp(&["."], &home);
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(std::fs::read(home.join(".bashrc")).unwrap(), b"x");
    let twice = HostileServer::start([file(0, "new"), file(1, "new"), end()].concat());
    let output = twice.cp(&[""], &twice.home());
    assert!(stderr(&output).contains("twice"), "{}", stderr(&output));
}

#[test]
fn a_server_that_sends_nothing_has_not_copied() {
    let server = HostileServer::start(end());
    let output = server.cp(&["notes.txt"], &server.home());
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("says nothing of notes.txt"), "{}", stderr(&output));
}

#[test]
fn paths_that_cannot_be_asked_for_are_refused() {
    let server = HostileServer::start(end());
    for (paths, reason) in [
        (&["a/x", "b/x"][..], "would get the same name"),
        (&["a", "."], "cannot be copied together"),
        (&["../x"], "`..`"),
        (&["/etc/passwd"], "absolute"),
    ] {
        let output = server.cp(paths, &server.home());
        assert_eq!(output.status.code(), Some(2), "{paths:?}");
        assert!(stderr(&output).contains(reason), "{}", stderr(&output));
    }
}

#[test]
fn a_server_refuses_paths_that_lead_out() {
    let offered = tempfile::tempdir().unwrap();
    let server = Server::start(&["--files", offered.path().to_str().unwrap()]);
    let file = server.credential(&["--files", "rw"]);
    let link = Link::from_str(std::fs::read_to_string(&file[1..]).unwrap().trim()).unwrap();
    Runtime::new().unwrap().block_on(async {
        let mut config = ClientConfig::new(link);
        config.paths = vec![PathSpec { name: "any".to_owned(), ..PathSpec::default() }];
        let session = connect(config).await.unwrap();
        for direction in ["to_client", "to_server"] {
            for path in ["../secret", "/etc/passwd", "a/../../b"] {
                let body = format!(
                    r#"{{"version":1,"direction":"{direction}","paths":["{path}"],"into":true}}"#
                );
                let mut stream = session.open_stream(Class::Interactive).await.unwrap();
                stream.write_all(&[16, 0, body.len() as u8]).await.unwrap();
                stream.write_all(body.as_bytes()).await.unwrap();
                assert_ne!(stream.read_u8().await.unwrap(), 0, "{direction} {path}");
            }
        }
        session.close(0, "done").await;
    });
    assert_eq!(names(offered.path()), [""; 0]);
}
