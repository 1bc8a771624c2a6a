//! The metrics over HTTP.

use std::collections::HashSet;
use std::io::{Read, Write};
use std::net::TcpStream;

use serde_json::Value;

use crate::harness::{Server, curl, run, stderr};

fn url(event: &Value) -> String {
    event["metrics"].as_str().unwrap().to_owned()
}

fn fetch(url: &str) -> String {
    let output = curl(&["--fail", url]);
    assert!(output.status.success(), "{}", stderr(&output));
    String::from_utf8(output.stdout).unwrap()
}

/// The value of the only sample that begins so.
fn value(exposition: &str, begin: &str) -> f64 {
    let found: Vec<&str> = exposition.lines().filter(|line| line.starts_with(begin)).collect();
    assert_eq!(found.len(), 1, "{begin}: {found:?}");
    found[0].rsplit(' ').next().unwrap().parse().unwrap()
}

#[test]
fn both_ends_tell_prometheus_what_they_do_and_no_secret() {
    let server = Server::start(&["--metrics", "0", "--allow", "127.0.0.0/8"]);
    let web = crate::web::start("127.0.0.1");
    let client = server.client(&["--path", "radio=127.0.0.1", "--metrics", "127.0.0.1:0"]);
    let page = client.curl_socks(&[&format!("http://{web}/1000")]);
    assert!(page.status.success(), "{}", stderr(&page));
    let here = fetch(&url(&client.daemon.first));
    let there = fetch(&url(&server.daemon.first));
    let whole = client.daemon.first["session"].as_str().unwrap();
    let session = &whole[..8];
    let labels = format!("{{session=\"{session}\",path=\"radio\"}}");
    let received = format!("sumrate_path_received_bytes_total{labels}");
    assert!(value(&here, &received) > 0.0);
    assert!(value(&there, &format!("sumrate_path_sent_bytes_total{labels}")) > 0.0);
    assert!(value(&here, &format!("sumrate_path_rtt_seconds{labels}")) < 60.0);
    // A rate is no sample before it was measured.
    let rate = format!("sumrate_path_rate_bytes_per_second{labels}");
    assert!(!here.contains(&rate) && !there.contains(&rate), "{there}");
    let much = client.curl_socks(&["-o", "/dev/null", &format!("http://{web}/4000000")]);
    assert!(much.status.success(), "{}", stderr(&much));
    assert!(value(&fetch(&url(&server.daemon.first)), &rate) > 0.0);
    let active =
        format!("sumrate_path_health{{session=\"{session}\",path=\"radio\",health=\"active\"}}");
    assert_eq!(value(&here, &active).to_bits(), 1f64.to_bits());
    let link = server.link();
    let secret = link.split("c=").nth(1).unwrap();
    for exposition in [&here, &there] {
        assert!(
            exposition.lines().all(|line| line.starts_with("# ") || line.starts_with("sumrate_"))
        );
        for word in [secret, "sumrate://", "127.0.0.1", whole, "password", "token"] {
            assert!(!exposition.contains(word), "{word} in {exposition}");
        }
        let names: Vec<&str> =
            exposition.lines().filter_map(|l| l.strip_prefix("# TYPE ")).collect();
        assert_eq!(names.iter().collect::<HashSet<_>>().len(), names.len(), "a family twice");
    }
}

#[test]
fn metrics_stay_on_this_machine_and_answer_to_their_address_only() {
    let directory = tempfile::tempdir().unwrap();
    let arguments = ["serve", "--json", "--listen", "127.0.0.1:0", "--metrics", "0.0.0.0:0"];
    let refused = run(directory.path(), &arguments);
    assert_eq!(refused.status.code(), Some(2));
    assert!(stderr(&refused).contains("--metrics-open"), "{}", stderr(&refused));
    let server = Server::start(&["--metrics", "0"]);
    let address = url(&server.daemon.first).replace("http://", "").replace("/metrics", "");
    let answer = |request: &str| {
        let mut stream = TcpStream::connect(&address).unwrap();
        // Refused in the midst of it, the rest meets a closed connection, and a reset may take the
        // answer with it.
        let _ = stream.write_all(request.as_bytes());
        let mut answer = String::new();
        let _ = stream.read_to_string(&mut answer);
        answer.lines().next().unwrap_or_default().to_owned()
    };
    let ask = |method: &str, path: &str, host: &str| {
        answer(&format!("{method} {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"))
    };
    assert!(ask("GET", "/metrics", &address).contains(" 200 "));
    assert!(ask("GET", "/metrics", "rebound.example").contains(" 421 "));
    assert!(ask("POST", "/metrics", &address).contains(" 405 "));
    assert!(ask("GET", "/", &address).contains(" 404 "));
    let endless = answer(&format!("GET /metrics HTTP/1.1\r\nX: {}\r\n\r\n", "x".repeat(1 << 20)));
    assert!(endless.is_empty() || endless.contains(" 4"), "{endless}");
    assert!(ask("GET", "/metrics", &address).contains(" 200 "), "it goes on");
}

#[test]
fn idle_connections_keep_nobody_from_the_metrics() {
    let server = Server::start(&["--metrics", "127.0.0.1:0"]);
    let metrics = url(&server.daemon.first);
    let address = metrics.replace("http://", "").replace("/metrics", "");
    let idle: Vec<TcpStream> = (0..40).map(|_| TcpStream::connect(&address).unwrap()).collect();
    // Before its head is read, the answer could only come after half a minute of silence.
    let output = curl(&["--fail", "--max-time", "20", &metrics]);
    assert!(output.status.success(), "{}", stderr(&output));
    drop(idle);
}

#[test]
fn open_metrics_are_scraped_by_any_name_and_the_page_is_not() {
    let open = ["--metrics", "127.0.0.1:0", "--metrics-open", "--web", "127.0.0.1:0", "--web-open"];
    let server = Server::start(&open);
    let status = |url: &str, host: &str| {
        let output =
            curl(&["--write-out", "\n%{http_code}", "--header", &format!("Host: {host}"), url]);
        assert!(output.status.success(), "{}", stderr(&output));
        let said = String::from_utf8(output.stdout).unwrap();
        said.rsplit('\n').next().unwrap().to_owned()
    };
    let page = server.daemon.first["web"].as_str().unwrap().split('#').next().unwrap().to_owned();
    for host in ["gateway.example:9464", "198.51.100.7:19464"] {
        assert_eq!(status(&url(&server.daemon.first), host), "200", "{host}");
        assert_eq!(status(&page, host), "421", "{host}");
    }
}
