//! What the JSON form says, and what other versions may leave out of it.

use super::*;

#[test]
fn a_rate_that_was_not_measured_is_0_in_json_and_absent_here() {
    let known = PathReport { rate_mbps: Some(42.5), ..PathReport::default() };
    for (report, number) in [(known, 42.5), (PathReport::default(), 0.0)] {
        let json = serde_json::to_value(&report).unwrap();
        assert_eq!(json["rate_mbps"], number, "a number, as earlier versions want it");
        assert_eq!(serde_json::from_value::<PathReport>(json).unwrap(), report);
    }
    let mut json = serde_json::to_value(PathReport::default()).unwrap();
    json["rate_mbps"] = serde_json::Value::Null;
    assert_eq!(serde_json::from_value::<PathReport>(json).unwrap().rate_mbps, None);
}

#[test]
fn a_path_that_other_versions_describe_has_no_last_error() {
    let mut json = serde_json::to_value(PathReport::default()).unwrap();
    assert!(json.get("last_error").is_none(), "{json}");
    json["what_later_versions_say"] = 1.into();
    assert_eq!(serde_json::from_value::<PathReport>(json).unwrap(), PathReport::default());
    let reason = "no answer from 192.0.2.1:7443 within 3s".to_owned();
    let error = PathErrorReport { reason, ago_s: 300.0, ..Default::default() };
    let wanted = "last error, 5 min ago: no answer from 192.0.2.1:7443 within 3s";
    assert_eq!(error.words(), wanted);
}

#[test]
fn what_an_earlier_version_reports_of_an_unmeasured_rate_is_forgotten() {
    let path = |sent: u64| {
        let mut path = serde_json::to_value(PathReport::default()).unwrap();
        path["rate_mbps"] = 37.5.into();
        path["rtt_ms"] = 10.0.into();
        path["sent_bytes"] = sent.into();
        path
    };
    let mut report: StatusReport = serde_json::from_value(serde_json::json!({
        "schema": STATUS_SCHEMA, "version": "0", "role": "client", "pid": 1, "uptime_s": 1.0,
        "proxies": {"socks": null, "http": null},
        "sessions": [{
            "id": "01", "scheduler": "just-in-time", "sent_bytes": 0, "redundant_bytes": 0,
            "received_bytes": 0, "duplicate_bytes": 0, "receive_memory_bytes": 0,
            "receive_buffer_peak_bytes": 0, "streams_opened": [0, 0], "streams": [],
            "paths": [path(1000), path(1 << 20)]
        }]
    }))
    .unwrap();
    rate::forget_unmeasured(&mut report);
    let rates = report.sessions[0].paths.iter().map(|path| path.rate_mbps);
    assert_eq!(rates.collect::<Vec<_>>(), [None, Some(37.5)]);
}
