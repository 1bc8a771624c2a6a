//! The text that Prometheus reads.

use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{CACHE_CONTROL, HeaderValue};
use hyper::{Response, StatusCode};
use prometheus::TextEncoder;

use super::families::families;
use crate::status::StatusReport;
use crate::web::{Answer, text};

/// Media type of the text format.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The report in Prometheus' text format.
///
/// # Errors
/// What the encoder says; it refuses empty families, of which there are none.
pub fn exposition(report: &StatusReport) -> Result<String, prometheus::Error> {
    TextEncoder::new().encode_to_string(&families(report))
}

/// The answer to a request for `path`.
pub fn answer(path: &str, report: impl FnOnce() -> StatusReport) -> Answer {
    if path != "/metrics" {
        return text(StatusCode::NOT_FOUND, "the metrics are at /metrics\n");
    }
    let Ok(body) = exposition(&report()) else {
        return text(StatusCode::INTERNAL_SERVER_ERROR, "the metrics could not be encoded\n");
    };
    let mut answer = Response::new(Full::new(Bytes::from(body)));
    let headers = answer.headers_mut();
    headers.insert(hyper::header::CONTENT_TYPE, HeaderValue::from_static(CONTENT_TYPE));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    answer
}
