//! What the two ends say to each other on a stream before raw bytes flow.
//!
//! The client opens a stream and writes one request: `u8` kind, `u16` length (big-endian), a JSON
//! body. The server answers with `u8` status, `u16` length, a JSON body. Then the stream carries raw
//! bytes both ways (kinds 1 and 3) or reports (kinds 2 and 6); with kinds 4 and 5 it has messages, and
//! with kind 16 those of [`files`](crate::files).

mod codec;
mod datagram;
mod message;

pub use codec::{
    ServiceError, encode_report, read_answer, read_report, read_request, write_answer,
    write_report, write_request,
};
pub use datagram::{Datagram, DatagramError, Destination};
pub use message::{
    Answer, AssociateRequest, BenchDirection, BenchLimit, BenchRequest, BenchStreamRequest,
    ConnectRequest, EchoRequest, FILES_NAMED, FILES_VERSION, FailureCode, FilesDirection,
    FilesRequest, ReportRequest, Request,
};
