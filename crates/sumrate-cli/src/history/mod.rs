//! The last five minutes of a daemon: one sample a second of each path and in total, and its last events.
//! The status page and `sumrate top` draw it, so that whoever opens them sees what was before.

mod events;
mod look;
mod report;
mod series;
mod socket;
mod state;

pub use look::{Look, OutageLook, PathLook, SessionLook};
pub use report::{
    EventLevel, HISTORY_SCHEMA, HistoryEvent, HistoryReport, PathSeriesReport, TotalSeriesReport,
};
pub use socket::{HistorySocket, ask_history, history_path};
pub use state::History;
