//! The status page's address, which is a password, where the service manager keeps what is printed.

use std::fs::File;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use nix::sys::signal::Signal;

use crate::harness::{Daemon, Server, curl, stderr, sumrate};

/// Starts a command as the service manager does; what it logs is in the file.
fn service(runtime: &Path, arguments: &[&str]) -> (Daemon, PathBuf) {
    let log = runtime.join(format!("{}.log", arguments[0]));
    let mut command = sumrate(runtime);
    command.env("NOTIFY_SOCKET", runtime.join("manager")).args(arguments);
    command.args(["--json", "--web", "0"]);
    (Daemon::start_with_log(command, File::create(&log).unwrap().into()), log)
}

/// The address is in its file alone, leads to the page, and goes with the service.
fn keeps_its_address((mut daemon, log): (Daemon, PathBuf)) {
    assert!(daemon.first["web"].is_null(), "{}", daemon.first);
    let socket = Path::new(daemon.first["status_socket"].as_str().unwrap());
    let place = socket.with_extension("web-url");
    assert_eq!(std::fs::metadata(&place).unwrap().permissions().mode() & 0o777, 0o600);
    let address = std::fs::read_to_string(&place).unwrap();
    let (page, token) = address.trim().split_once("#token=").unwrap();
    let fetched = curl(&["--fail", page]);
    assert!(fetched.status.success(), "{}", stderr(&fetched));
    daemon.signal(Signal::SIGTERM);
    assert!(daemon.wait().success());
    assert!(!place.exists(), "the address outlives the page");
    let said = std::fs::read_to_string(&log).unwrap();
    assert!(said.contains(place.to_str().unwrap()), "{said}");
    assert!(!said.contains(token), "{said}");
    assert!(!daemon.rest().contains(token));
}

#[test]
fn a_service_writes_the_address_of_its_page_into_a_file_and_no_journal() {
    let directory = tempfile::tempdir().unwrap();
    let place = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    let listen = ["serve", "--listen", "127.0.0.1:0", "--state"];
    let link = ["--link-file", &place("link")];
    let server =
        service(directory.path(), &[&listen[..], &[place("state").as_str()], &link].concat());
    let up = ["up", &format!("@{}", place("link")), "--path", "lo=127.0.0.1"];
    let socks = ["--socks", "127.0.0.1:0"];
    keeps_its_address(service(directory.path(), &[&up[..], &socks].concat()));
    keeps_its_address(server);
}

#[test]
fn a_person_is_told_the_address() {
    let server = Server::start(&["--web", "0"]);
    let address = server.daemon.first["web"].as_str().unwrap();
    assert!(address.contains("/#token="), "{address}");
}
