//! FBDT: reliable streams over several TCP/TLS paths at once.
//!
//! A client [`connect`]s to a server over every network interface, a server [`Listener`] gathers
//! the connections into [`Session`]s, and both open [`Stream`]s, which are tokio's `AsyncRead` and
//! `AsyncWrite`. What goes where is decided by the crate `fbdt-proto`, which knows neither sockets
//! nor clocks; this crate gives it both and decides nothing of the protocol itself.
//!
//! In the order in which a connection meets them: [`identity`] says who is who, `interfaces`, `names` and
//! `dial` or `listen` make connections, `socket` tunes and measures them, `tls` protects them,
//! `auth` proves that they belong to a session, `echo` probes paths without a connection, `memory` counts what sessions hold, `subflow` runs each of them, and `session` is what
//! the application holds.
//!
//! ```no_run
//! use fbdt::{ClientConfig, Class, connect};
//! use tokio::io::{AsyncReadExt, AsyncWriteExt};
//!
//! # async fn example(link: fbdt::Link) -> Result<(), Box<dyn std::error::Error>> {
//! let session = connect(ClientConfig::new(link)).await?;
//! let mut stream = session.open_stream(Class::Interactive).await?;
//! stream.write_all(b"hello").await?;
//! stream.finish()?;
//! let mut answer = Vec::new();
//! stream.read_to_end(&mut answer).await?;
//! session.shutdown(std::time::Duration::from_secs(5)).await?;
//! # Ok(()) }
//! ```

#[cfg(feature = "fuzzing")]
pub mod fuzzing;
pub mod identity;

mod interfaces;

mod dial;
mod examine;
mod listen;

mod dial_memory;
mod known_servers;
mod left_out;
mod names;
mod socket;
mod tls;
mod trouble;

mod auth;
mod echo;
mod memory;

mod subflow;

mod session;

mod clock;
mod config;
mod policies;
mod source;

pub use config::{AcceptLimits, ClientConfig, PathSpec, ServerConfig};
pub use dial::{Attempt, CLOSE_FORGOTTEN, ConnectError, PathFailure, connect};
pub use dial_memory::DialMemory;
pub use examine::{NameReport, NetworkReport, ServerReach, examine, tunnels};
pub use identity::{
    Credential, CredentialId, CredentialInfo, CredentialLimits, FileAccess, Link, LinkError,
    ServerAddress, ServerState, StateError,
};
pub use interfaces::{PathInterface, PathInterfaces, name_matches};
pub use known_servers::KnownServers;
pub use left_out::{LeftOutInterfaces, WhyLeftOut};
pub use listen::{AcceptError, BindError, CLOSE_MEMORY, CLOSE_REVOKED, Listener};
pub use memory::MemoryReservation;
pub use policies::PathPolicies;
pub use session::{
    ClassHandle, Messages, PathError, PathInfo, RecvStream, SendStream, Session, SessionEvent,
    SessionEvents, Stream, Undelivered,
};
pub use socket::{
    CongestionControl, Coupling, LocalBinding, ParseCongestionControlError, SocketError,
};
pub use source::source_of;
pub use tls::TlsConfigError;
pub use trouble::PathTrouble;

pub use fbdt_proto::handshake::RefuseCode;
pub use fbdt_proto::{
    Budget, Class, ClassStats, Classes, CloseReason, Config, ConfigError, Delivery, Direction,
    Health, Importance, Limits, MessageError, MessageOptions, MessageStats, OpenError, PathId,
    PathPolicy, PathStats, Priority, RateCap, Redundancy, Role, SchedulerKind, SessionStats,
    SharedBottleneck, StreamError, StreamId, StreamStats, Weight, WindowMode,
};
pub use fbdt_proto::{Cell, WhyIdle, WindowPicture};
