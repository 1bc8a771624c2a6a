//! Unmodified programs over both proxies.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use crate::harness::{Server, curl, stderr};
use crate::web;

const LARGE: usize = 40_000_000;

#[test]
fn a_large_download_and_upload_over_both_proxies() {
    let web = web::start("127.0.0.1");
    let server = Server::start(&["--allow", "127.0.0.0/8"]);
    let client = server.client(&["--path", "a=127.0.0.1", "--path", "b=127.0.0.2"]);
    let url = format!("http://{web}/{LARGE}");
    for output in [client.curl_socks(&[&url]), client.curl_http(&[&url])] {
        assert!(output.status.success(), "{}", stderr(&output));
        assert!(output.stdout == web::body(LARGE), "{} bytes", output.stdout.len());
    }
    let upload = web::body(5_000_000);
    let sum: u64 = upload.iter().map(|byte| u64::from(*byte)).sum();
    let file = server.runtime().join("upload");
    std::fs::write(&file, &upload).unwrap();
    let data = format!("@{}", file.display());
    let output = client.curl_socks(&["--data-binary", &data, &format!("http://{web}/")]);
    assert_eq!(String::from_utf8_lossy(&output.stdout), format!("5000000 {sum}"));
}

/// As programs do that `http_proxy` is set for.
#[test]
fn plain_http_goes_through_the_http_proxy() {
    let web = web::start("127.0.0.1");
    let server = Server::start(&["--allow", &web.to_string()]);
    let client = server.client(&[]);
    let proxy = format!("http://{}", client.http());
    let url = |length: usize| format!("http://{web}/{length}");
    let (one, two) = (url(3000), url(50_000));
    let output = curl(&["--proxy", &proxy, &one, &two]);
    let both = [web::body(3000), web::body(50_000)].concat();
    assert!(output.stdout == both, "{} bytes; {}", output.stdout.len(), stderr(&output));
    let upload = curl(&["--proxy", &proxy, "--data-binary", "abc", &format!("http://{web}/")]);
    assert_eq!(String::from_utf8_lossy(&upload.stdout), format!("3 {}", 97 + 98 + 99));
    let large = curl(&["--proxy", &proxy, &url(LARGE)]);
    assert!(large.stdout == web::body(LARGE), "{} bytes; {}", large.stdout.len(), stderr(&large));
    let refused = curl(&["--proxy", &proxy, "--include", "http://127.0.0.1:1/"]);
    let answer = String::from_utf8_lossy(&refused.stdout).into_owned();
    assert!(answer.starts_with("HTTP/1.1 403 "), "{answer}");
}

#[test]
fn names_are_resolved_at_the_exit_and_ipv6_is_reached() {
    let server = Server::start(&["--allow", "127.0.0.0/8", "--allow", "::1"]);
    let client = server.client(&[]);
    let web = web::start("127.0.0.1");
    let url = format!("http://localhost:{}/1000", web.port());
    for output in [client.curl_socks(&[&url]), client.curl_http(&[&url])] {
        assert_eq!(output.stdout, web::body(1000), "{}", stderr(&output));
    }
    let web = web::start("::1");
    let url = format!("http://{web}/1000");
    for output in [client.curl_socks(&["-g", &url]), client.curl_http(&["-g", &url])] {
        assert_eq!(output.stdout, web::body(1000), "{}", stderr(&output));
    }
}

#[test]
fn one_address_and_port_can_be_allowed_and_an_interface_be_a_path() {
    let web = web::start("127.0.0.1");
    let server = Server::start(&["--allow", &web.to_string()]);
    let client = server.client(&["--path", "only=lo"]);
    let output = client.curl_socks(&[&format!("http://{web}/5")]);
    assert_eq!(output.stdout, web::body(5), "{}", stderr(&output));
}

#[test]
fn what_the_exit_may_not_reach_is_refused_with_its_reason() {
    let web = web::start("127.0.0.1");
    let server = Server::start(&[]);
    let client = server.client(&[]);
    for host in ["127.0.0.1", "localhost", "[::ffff:127.0.0.1]"] {
        let url = format!("http://{host}:{}/10", web.port());
        let output = client.curl_socks(&["-g", &url]);
        // curl's 97 is a proxy's refusal; (2) is 'not allowed by ruleset'.
        assert_eq!(output.status.code(), Some(97), "{}", stderr(&output));
        assert!(stderr(&output).contains("(2)"), "{}", stderr(&output));
        let output = client.curl_http(&["-g", &url]);
        assert!(stderr(&output).contains("403"), "{}", stderr(&output));
    }
    let own = server.listen();
    assert_eq!(client.curl_socks(&[&format!("http://{own}/")]).status.code(), Some(97));
}

/// What the server's resolver makes of a name is not the client's to know.
#[test]
fn a_refused_name_does_not_reveal_its_address() {
    // Most machines know their own name: it leads to an address of the machine.
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    let name = name.trim();
    let server = Server::start(&[]);
    let client = server.client(&[]);
    let proxy = format!("http://{}", client.http());
    let refused = crate::harness::curl(&["--proxy", &proxy, &format!("http://{name}:81/")]);
    let body = String::from_utf8_lossy(&refused.stdout);
    assert!(
        body.contains(&format!("`{name}` has no address that the server may connect to")),
        "{body}"
    );
}

#[test]
fn a_refused_connection_is_told_as_such() {
    let closed = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = closed.local_addr().unwrap().port();
    drop(closed);
    let server = Server::start(&["--allow", "127.0.0.0/8"]);
    let client = server.client(&[]);
    let url = format!("http://127.0.0.1:{port}/");
    let output = client.curl_socks(&[&url]);
    assert!(stderr(&output).contains("(5)"), "{}", stderr(&output));
    let output = client.curl_http(&[&url]);
    assert!(stderr(&output).contains("502"), "{}", stderr(&output));
    let output = client.curl_socks(&["http://no-such-name.invalid/"]);
    assert!(stderr(&output).contains("(4)"), "{}", stderr(&output));
}

#[test]
fn a_password_is_demanded_on_both_proxies() {
    let web = web::start("127.0.0.1");
    let server = Server::start(&["--allow", "127.0.0.1"]);
    let client = server.client(&["--socks-auth", "me:secret word"]);
    let url = format!("http://{web}/100");
    for (user, right) in [("me:secret word", true), ("me:other", false), ("", false)] {
        let credentials: Vec<&str> = match user {
            "" => Vec::new(),
            user => vec!["--proxy-user", user],
        };
        let arguments = [credentials.as_slice(), &[&url]].concat();
        let socks = client.curl_socks(&arguments);
        assert_eq!(socks.status.success(), right, "{user}: {}", stderr(&socks));
        let http = client.curl_http(&arguments);
        assert_eq!(http.status.success(), right, "{user}: {}", stderr(&http));
        assert_eq!(stderr(&http).contains("407"), !right);
    }
}

/// Load balancers answer and then reset: what was sent before arrives before the failure.
#[test]
fn what_a_target_sent_before_it_resets_arrives() {
    const BYTES: usize = 200_000;
    let target = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = target.local_addr().unwrap();
    let answering = std::thread::spawn(move || {
        let (mut connection, _) = target.accept().unwrap();
        connection.write_all(&vec![7; BYTES]).unwrap();
        // The exit takes all of it at once; its path carries it in more than a second.
        std::thread::sleep(Duration::from_millis(400));
        socket2::SockRef::from(&connection).set_linger(Some(Duration::ZERO)).unwrap();
    });
    let server = Server::start(&["--allow", "127.0.0.1"]);
    let client = server.client(&["--path", "a=127.0.0.1", "--policy", "a=rate=1M"]);
    let mut connection = TcpStream::connect(client.http()).unwrap();
    connection.write_all(format!("CONNECT {address} HTTP/1.1\r\n\r\n").as_bytes()).unwrap();
    let mut received = Vec::new();
    let end = connection.read_to_end(&mut received);
    answering.join().unwrap();
    let body = received.iter().filter(|byte| **byte == 7).count();
    assert_eq!(body, BYTES, "{end:?}");
    assert!(end.is_err(), "a failure is no end of data");
}
