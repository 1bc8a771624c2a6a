//! Each command in a file of its own; `setup` turns flags into configurations and refuses bad ones
//! before anything starts.

mod bench;
mod credential;
mod dial;
mod error;
mod event;
mod keep;
mod reach;
mod serve;
mod setup;
mod status;
mod up;

pub use bench::bench;
pub use credential::{CREDENTIAL_SCHEMA, CredentialReport, CredentialSummary, credential};
pub use error::{CommandError, ERROR_SCHEMA, ErrorReport};
pub use event::{PathSummary, SERVE_SCHEMA, ServeEvent, ServeLine, UP_SCHEMA, UpEvent, UpLine};
pub use serve::serve;
pub use setup::SetupError;
pub use status::status;
pub use up::up;
