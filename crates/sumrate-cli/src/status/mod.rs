//! What a running process says about itself: as values, over a socket, and as a table.

mod details;
mod far;
mod headline;
mod idle;
mod peer;
mod process;
mod quota;
mod rate;
mod report;
mod socket;
mod table;
mod trouble;
mod units;

pub use far::{FarPathReport, FarReport, STREAMS_REPORTED};
pub use headline::{HeadlineReport, Level, StateReport};
pub(crate) use headline::{annotate as annotate_headline, list};
pub(crate) use peer::check as check_peer;
pub use process::{
    AttemptsReport, CaptureReport, LeftOutReport, OutageReport, ProxyReport, ReloadReport,
    ServerReport, StoppingReport, UdpReport,
};
pub use quota::QuotaReport;
pub(crate) use report::Seen;
pub use report::{
    ClassReport, DelayReport, MessageReport, PathReport, RatesReport, RedundantReport,
    STATUS_SCHEMA, SessionReport, StatusReport, StreamReport, WindowReport,
};
pub(crate) use socket::{EXCHANGE_TIMEOUT, ask_json, ask_process};
pub use socket::{SocketError, StatusSocket, ask, ask_all, beside};
pub use table::write_table;
pub(crate) use table::{identity, missing_family, rtt_words};
pub use trouble::PathErrorReport;
pub(crate) use units::{bytes, label, lasting, write_columns};
