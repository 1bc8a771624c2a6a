//! Requests and answers as values.

use serde::{Deserialize, Serialize};

/// What a client asks of the server on a new stream.
#[derive(Debug, Clone, PartialEq)]
pub enum Request {
    /// Kind 1: connect to a host and relay bytes.
    Connect(ConnectRequest),
    /// Kind 2: take part in a measurement; this stream controls it.
    Bench(BenchRequest),
    /// Kind 3: this stream carries the bytes of a measurement.
    BenchStream(BenchStreamRequest),
    /// Kind 4: relay UDP datagrams, each a message of this stream, until the stream ends.
    Associate(AssociateRequest),
    /// Kind 5: send each message of this stream back.
    Echo(EchoRequest),
    /// Kind 6: say what this session's paths do at the server's end.
    Report(ReportRequest),
    /// Kind 16: copy files.
    Files(FilesRequest),
}

/// Body of kind 1.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConnectRequest {
    /// Domain name (resolved by the server) or address without brackets.
    pub host: String,
    /// TCP port.
    pub port: u16,
    /// Name of the traffic class that the user gave it; without one, the server guesses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<String>,
}

/// Body of kind 4.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AssociateRequest {
    /// As in [`ConnectRequest`], where it is known already. Else the client may say it later, in one
    /// byte on this stream: the class's number on the wire.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<String>,
}

/// Body of kind 5.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EchoRequest {
    /// Milliseconds after which an echo is worth nothing any more.
    pub lifetime_ms: u32,
}

/// Body of kind 6.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReportRequest {}

/// Body of kind 2.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BenchRequest {
    /// Number that the streams of this measurement carry, unique in the session.
    pub id: u64,
    /// Who sends.
    pub direction: BenchDirection,
    /// Number of streams that will follow.
    pub streams: u16,
    /// When the sender stops.
    pub limit: BenchLimit,
    /// Seconds sent first and not counted.
    pub warmup_s: f64,
    /// Length of a reported interval in seconds.
    pub interval_s: f64,
    /// Whether the receiver compares the bytes with the pattern.
    pub verify: bool,
}

/// Who sends in a measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BenchDirection {
    /// The client sends to the server.
    ClientToServer,
    /// The server sends to the client.
    ServerToClient,
}

/// When the sender of a measurement stops.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BenchLimit {
    /// After the warm-up and this many seconds.
    Seconds(f64),
    /// After this many bytes, over all streams.
    Bytes(u64),
}

/// Body of kind 3.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct BenchStreamRequest {
    /// The measurement's number.
    pub id: u64,
    /// Which of its streams this is, from 0.
    pub index: u16,
}

/// Version of what follows a request for files.
pub const FILES_VERSION: u32 = 1;

/// What the server says to a copy that is called as its destination says, instead of going into it.
pub const FILES_NAMED: &str = "named";

/// Body of kind 16.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FilesRequest {
    /// Version of the messages that follow, [`FILES_VERSION`].
    pub version: u32,
    /// Who sends files.
    pub direction: FilesDirection,
    /// Below the server's directory: what is copied, or where it goes (one).
    pub paths: Vec<String>,
    /// Whether the destination is a directory, which is made if it is missing.
    #[serde(default)]
    pub into: bool,
    /// Whether the destination is what the copy is called, even if a directory of that name is there:
    /// said by another attempt of a copy whose first one was answered [`FILES_NAMED`].
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub exact: bool,
    /// Greatest rate of what the server sends, bytes per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<u64>,
}

/// Who sends files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FilesDirection {
    /// The client sends to the server.
    ToServer,
    /// The server sends to the client.
    ToClient,
}

/// What the server says to a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// Status 0: go on. The text describes what was reached, such as the address.
    Ready(String),
    /// Any other status: the stream ends here.
    Refused {
        /// Why, for programs.
        code: FailureCode,
        /// Why, for people.
        message: String,
    },
}

/// Why the server did not do what was asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum FailureCode {
    /// Anything that has no code of its own.
    General = 1,
    /// The exit's policy does not permit this target.
    NotAllowed = 2,
    /// No route to the target's network.
    NetworkUnreachable = 3,
    /// The target does not answer.
    HostUnreachable = 4,
    /// The target refused the connection.
    Refused = 5,
    /// The target did not answer in time.
    TimedOut = 6,
    /// The server does not know this kind of request.
    Unsupported = 7,
    /// The name could not be resolved.
    NameFailure = 8,
    /// The request makes no sense.
    BadRequest = 9,
    /// The server is at a limit.
    Busy = 10,
}

impl FailureCode {
    /// Every code.
    pub const ALL: [Self; 10] = [
        Self::General,
        Self::NotAllowed,
        Self::NetworkUnreachable,
        Self::HostUnreachable,
        Self::Refused,
        Self::TimedOut,
        Self::Unsupported,
        Self::NameFailure,
        Self::BadRequest,
        Self::Busy,
    ];

    /// The code for a status byte; an unknown one counts as general.
    pub fn from_status(status: u8) -> Self {
        Self::ALL.into_iter().find(|code| *code as u8 == status).unwrap_or(Self::General)
    }
}
