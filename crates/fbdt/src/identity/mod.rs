//! Who is who: the server's key, the clients' credentials, and the link that joins them.

mod credential;
#[cfg(feature = "fuzzing")]
pub(crate) mod fuzzing;
mod link;
pub(crate) mod private_file;
mod process_lock;
mod secret;
mod server_key;
mod state;

pub use credential::{
    Credential, CredentialId, CredentialInfo, CredentialLimits, FileAccess, ParseCredentialIdError,
    ParseFileAccessError,
};
pub use link::{Link, LinkError, ServerAddress};
pub use private_file::PrivateFileError;
pub use process_lock::{ProcessLock, ProcessLockError};
pub use secret::{RandomError, Secret};
pub use server_key::{KeyFingerprint, ServerKey, ServerKeyError};
pub use state::{ServerState, StateError};

pub(crate) use secret::fill_random;
