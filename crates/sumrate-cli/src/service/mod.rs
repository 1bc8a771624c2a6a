//! What the two ends say to each other on a stream before raw bytes flow.
//!
//! The client opens a stream and writes one request: `u8` kind, `u16` length (big-endian), a JSON
//! body. The server answers with `u8` status, `u16` length, a JSON body. Then the stream carries raw
//! bytes both ways (kinds 1 and 3), reports (kind 2) or the messages of [`files`](crate::files) (kind 16).

mod codec;
mod message;

pub use codec::{
    ServiceError, read_answer, read_report, read_request, write_answer, write_report, write_request,
};
pub use message::{
    Answer, BenchDirection, BenchLimit, BenchRequest, BenchStreamRequest, ConnectRequest,
    FILES_VERSION, FailureCode, FilesDirection, FilesRequest, Request,
};
