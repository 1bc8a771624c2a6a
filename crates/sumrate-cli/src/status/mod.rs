//! What a running process says about itself: as values, over a socket, and as a table.

mod far;
mod process;
mod rate;
mod report;
mod socket;
mod table;

pub use far::{FarPathReport, FarReport};
pub use process::{
    CaptureReport, OutageReport, ProxyReport, ReloadReport, StoppingReport, UdpReport,
};
pub(crate) use report::Seen;
pub use report::{
    ClassReport, DelayReport, MessageReport, PathErrorReport, PathReport, QuotaReport,
    RedundantReport, STATUS_SCHEMA, SessionReport, StatusReport, StreamReport, WindowReport,
};
pub use socket::{SocketError, StatusSocket, ask, ask_all, default_directory};
pub use table::write_table;
pub(crate) use table::{bytes, label, lasting, write_columns};
