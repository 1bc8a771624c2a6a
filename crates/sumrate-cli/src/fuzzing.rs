//! What strangers send to the proxies, peers to the exit, and files and name servers say, as fuzz
//! targets. Each panics where a parser does not keep its word.
#![allow(clippy::panic)] // this is what finds

use std::path::Path;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use fbdt_proto::plain_text::is_hidden;
use fbdt_proto::{Priority, WhyIdle};

use crate::config::ConfigFile;
use crate::exit::AllowRule;
use crate::explain::explain;
use crate::files::read_message;
use crate::proxy::message_of;
use crate::service::{Answer, Datagram, read_answer, read_report, read_request};
use crate::status::{
    FarReport, PathReport, STREAMS_REPORTED, SessionReport, StatusReport, write_table,
};

pub use crate::capture::fuzzing::dns;
pub use crate::files::fuzzing::copy_receiver;
pub use crate::policy::fuzzing::path_usage;
pub use crate::proxy::fuzzing::{http, socks5};

/// Runs what never has to wait, because all its bytes are there.
pub(crate) fn now<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(result) => result,
        Poll::Pending => panic!("it waits although everything is there"),
    }
}

/// A datagram of a client of the SOCKS5 proxy; what is behind its prefix travels.
pub fn datagram(data: &[u8]) {
    if let Some(message) = message_of(data, 4096) {
        let parsed = Datagram::parse(message).map(|datagram| datagram.data.len());
        assert!(parsed.is_ok_and(|size| size < message.len() && message.len() <= 4096));
    }
    if let Ok(parsed) = Datagram::parse(data) {
        assert!(!parsed.destination.host.is_empty() && data.ends_with(parsed.data));
    }
}

/// What the other end of a copy says: messages, each of which survives its own encoding.
pub fn files(data: &[u8]) {
    let mut rest = data;
    while let Ok(Some(message)) = now(read_message(&mut rest)) {
        let encoded = message.encode();
        assert_eq!(now(read_message(&mut encoded.as_slice())).ok(), Some(Some(message)));
    }
}

/// A configuration file: it is refused with a line, or its keys become words of a command line.
pub fn config(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    if let Ok(file) = ConfigFile::parse(text, Path::new("fuzz.toml"), 0o600) {
        let _ = crate::config::check(&file);
    }
}

/// What comes on a stream of the service protocol: a client's request, and a server's answer with a
/// report behind it.
pub fn service(data: &[u8]) {
    let mut rest = data;
    if now(read_request(&mut rest)).is_ok() {
        assert!(data.len() - rest.len() >= 3, "a request has a head");
    }
    let mut rest = data;
    if let Ok(Answer::Ready(message) | Answer::Refused { message, .. }) =
        now(read_answer(&mut rest))
    {
        assert!(!message.contains(is_hidden), "{message:?}");
        framed_report(rest);
    }
    framed_report(data);
}

fn framed_report(mut data: &[u8]) {
    if let Ok(report) = now(read_report::<_, FarReport>(&mut data)) {
        check_report(report);
    }
}

/// What a server reports of its paths: it is bounded, and reaches a terminal in this end's words.
pub fn report(data: &[u8]) {
    if let Ok(report) = serde_json::from_slice::<FarReport>(data) {
        check_report(report);
    }
}

fn check_report(report: FarReport) {
    let report = report.plain();
    assert!(report.paths.len() <= 16 && report.classes.len() <= STREAMS_REPORTED);
    for path in report.paths.values() {
        let known = |why: &str| why == "unknown" || WhyIdle::ALL.iter().any(|k| k.name() == why);
        assert!(known(&path.why) && path.waited_s.keys().all(|why| known(why)), "{path:?}");
        assert!((0.0..=1.0).contains(&path.retransmitted_share), "{path:?}");
        assert!(path.rate_mbps.is_none_or(|rate| rate >= 0.0), "{path:?}");
        assert!(path.waited_s.values().all(|time| *time >= 0.0), "{path:?}");
    }
    let plain = |text: &str| !text.contains(|c: char| c.is_control() && c != '\n');
    assert!(report.paths.keys().all(|name| plain(name)), "{:?}", report.paths);
    let mut status = StatusReport::default();
    let shown = report.paths.iter().map(|(name, far)| PathReport {
        far: Some(far.clone()),
        ..PathReport::idle(name, Priority::default())
    });
    status.sessions.push(SessionReport { paths: shown.collect(), ..SessionReport::default() });
    let mut table = Vec::new();
    assert!(
        write_table(&mut table, &status, true)
            .is_ok_and(|()| plain(&String::from_utf8_lossy(&table)))
    );
    let words = explain(&status, &status);
    assert!(serde_json::to_string(&words).is_ok_and(|words| plain(&words)));
}

/// A rule of `--allow`, or of a credential's file: it means the same when it is written again.
pub fn allow_rule(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    if let Ok(rule) = text.parse::<AllowRule>() {
        assert_eq!(rule.to_string().parse(), Ok(rule), "{text}");
    }
}
