//! Refused destinations, as both ends tell of them.

use serde_json::Value;

use crate::harness::{Server, curl, json, run};
use crate::schemas::conforms;

const TARGET: &str = "10.0.0.5:80";

/// What the process behind a status socket says of refusals.
fn refusals(server: &Server, socket: &str) -> Value {
    let status = json(&run(server.runtime(), &["status", "--json", "--socket", socket]));
    conforms("status", &status);
    status["refusals"].clone()
}

#[test]
fn a_refused_destination_is_counted_at_both_ends_with_the_flag_that_allows_it() {
    let server = Server::start(&["--metrics", "0"]);
    let client = server.client(&[]);
    let there = server.daemon.first["status_socket"].as_str().unwrap();
    let here = client.status_socket();
    let here = here.to_str().unwrap();
    assert!(refusals(&server, here).is_null() && refusals(&server, there).is_null());
    for _ in 0..3 {
        let proxy = format!("http://{}", client.http());
        let answer = curl(&["--proxy", &proxy, &format!("http://{TARGET}/")]);
        let body = String::from_utf8_lossy(&answer.stdout);
        assert!(body.contains("`sumrate serve --allow 10.0.0.5` would allow it"), "{body}");
    }
    for (socket, reason) in [(here, "not-allowed"), (there, "private")] {
        let found = refusals(&server, socket);
        assert_eq!(found["reasons"], serde_json::json!({ reason: 3 }), "{found:#}");
        let latest = &found["latest"][0];
        assert_eq!((&latest["destination"], &latest["count"]), (&TARGET.into(), &3.into()));
        assert!(latest["words"].as_str().unwrap().contains("--allow 10.0.0.5"), "{latest:#}");
        let table = run(server.runtime(), &["status", "--socket", socket]);
        let table = String::from_utf8(table.stdout).unwrap();
        assert!(table.contains(&format!("3 refused connections ({reason} 3)")), "{table}");
    }
    let metrics = curl(&[server.daemon.first["metrics"].as_str().unwrap()]);
    let metrics = String::from_utf8(metrics.stdout).unwrap();
    let counter = "sumrate_refused_destinations_total{reason=\"private\"} 3\n";
    assert!(metrics.contains(counter), "{metrics}");
    assert!(!metrics.contains("10.0.0.5"), "no destination is in the metrics: {metrics}");
}
