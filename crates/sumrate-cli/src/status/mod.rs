//! What a running process says about itself: as values, over a socket, and as a table.

mod report;
mod socket;
mod table;

pub use report::{
    CaptureReport, ClassReport, DelayReport, MessageReport, OutageReport, PathReport, ProxyReport,
    QuotaReport, RedundantReport, ReloadReport, STATUS_SCHEMA, SessionReport, StatusReport,
    StreamReport, WindowReport,
};
pub use socket::{SocketError, StatusSocket, ask, ask_all, default_directory};
pub use table::write_table;
pub(crate) use table::{bytes, write_columns};
