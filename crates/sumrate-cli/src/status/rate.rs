//! The rate of a link, which is known once a path has sent enough. In JSON it is 0 until then, as readers
//! of earlier versions want a number.

use fbdt_proto::PathStats;
use serde::{Deserialize, Deserializer, Serializer};

use super::StatusReport;

/// Bytes that a path must have sent before its rate is a measurement: until then it is what TCP's
/// first window would give.
const MEASURED: u64 = 256 << 10;

/// The rate of a path, if it was measured. Of a link that could carry more than the path's rate cap
/// nothing else is known: what was measured is what the cap let through.
pub(super) fn of(stats: &PathStats) -> Option<f64> {
    let rate = stats.rate * 8e-6;
    let is_measured = !stats.srtt.is_zero() && stats.new_bytes + stats.redundant() >= MEASURED;
    let cap = stats.policy.rate_cap.map(|cap| f64::from(cap.kilobits()) / 1e3);
    let is_of_link = cap.is_none_or(|cap| rate < cap);
    (is_measured && is_of_link && rate.is_finite() && rate > 0.0).then_some(rate)
}

/// Forgets rates that were not measured: processes of earlier versions report them like others.
pub(super) fn forget_unmeasured(report: &mut StatusReport) {
    for path in report.sessions.iter_mut().flat_map(|session| &mut session.paths) {
        let sent = path.sent_bytes.saturating_add(path.redundant_bytes);
        if path.rtt_ms <= 0.0 || sent < MEASURED {
            path.rate_mbps = None;
        }
    }
}

pub(super) fn serialize<S: Serializer>(
    rate: &Option<f64>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(rate.unwrap_or(0.0))
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<f64>, D::Error> {
    let rate = Option::<f64>::deserialize(deserializer)?;
    Ok(rate.filter(|rate| *rate > 0.0))
}
