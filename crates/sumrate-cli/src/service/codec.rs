//! Requests, answers and reports as bytes.

use fbdt_proto::plain_text::plain;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use super::{Answer, FailureCode, Request};

const KIND_CONNECT: u8 = 1;
const KIND_BENCH: u8 = 2;
const KIND_BENCH_STREAM: u8 = 3;
const KIND_ASSOCIATE: u8 = 4;
const KIND_ECHO: u8 = 5;
const KIND_REPORT: u8 = 6;
const KIND_FILES: u8 = 16;

/// Longest body of a request or answer, in bytes.
const BODY_MAX: usize = 4096;
/// Longest report, in bytes.
const REPORT_MAX: usize = 16 << 20;

/// Why a message of the service protocol could not be exchanged.
#[derive(Debug, thiserror::Error)]
pub enum ServiceError {
    /// The stream failed or ended early.
    #[error("the stream to the other end failed: {0}")]
    Io(#[from] std::io::Error),
    /// A kind of request that this version does not know.
    #[error("the request has kind {0}, which this version does not know; upgrade this end")]
    UnknownKind(u8),
    /// Longer than the protocol allows.
    #[error("a message of {length} bytes is longer than the {limit} allowed")]
    TooLong {
        /// Announced or produced length.
        length: usize,
        /// The limit.
        limit: usize,
    },
    /// The body is not the JSON expected.
    #[error("a message's body is not as the protocol says: {0}")]
    Malformed(#[from] serde_json::Error),
}

#[derive(Serialize, Deserialize)]
struct AnswerBody {
    message: String,
}

/// Writes a request.
pub async fn write_request<W: AsyncWrite + Unpin>(
    writer: &mut W,
    request: &Request,
) -> Result<(), ServiceError> {
    let (kind, body) = match request {
        Request::Connect(body) => (KIND_CONNECT, serde_json::to_vec(body)?),
        Request::Bench(body) => (KIND_BENCH, serde_json::to_vec(body)?),
        Request::BenchStream(body) => (KIND_BENCH_STREAM, serde_json::to_vec(body)?),
        Request::Associate(body) => (KIND_ASSOCIATE, serde_json::to_vec(body)?),
        Request::Echo(body) => (KIND_ECHO, serde_json::to_vec(body)?),
        Request::Report(body) => (KIND_REPORT, serde_json::to_vec(body)?),
        Request::Files(body) => (KIND_FILES, serde_json::to_vec(body)?),
    };
    write_framed(writer, kind, &body).await
}

/// Reads a request.
pub async fn read_request<R: AsyncRead + Unpin>(reader: &mut R) -> Result<Request, ServiceError> {
    let (kind, body) = read_framed(reader).await?;
    Ok(match kind {
        KIND_CONNECT => Request::Connect(serde_json::from_slice(&body)?),
        KIND_BENCH => Request::Bench(serde_json::from_slice(&body)?),
        KIND_BENCH_STREAM => Request::BenchStream(serde_json::from_slice(&body)?),
        KIND_ASSOCIATE => Request::Associate(serde_json::from_slice(&body)?),
        KIND_ECHO => Request::Echo(serde_json::from_slice(&body)?),
        KIND_REPORT => Request::Report(serde_json::from_slice(&body)?),
        KIND_FILES => Request::Files(serde_json::from_slice(&body)?),
        other => return Err(ServiceError::UnknownKind(other)),
    })
}

/// Writes an answer; a message too long for the protocol is cut.
pub async fn write_answer<W: AsyncWrite + Unpin>(
    writer: &mut W,
    answer: &Answer,
) -> Result<(), ServiceError> {
    let (status, text) = match answer {
        Answer::Ready(text) => (0, text),
        Answer::Refused { code, message } => (*code as u8, message),
    };
    let message: String = text.chars().take(500).collect();
    write_framed(writer, status, &serde_json::to_vec(&AnswerBody { message })?).await
}

/// Reads an answer.
pub async fn read_answer<R: AsyncRead + Unpin>(reader: &mut R) -> Result<Answer, ServiceError> {
    let (status, body) = read_framed(reader).await?;
    let AnswerBody { message } = serde_json::from_slice(&body)?;
    // People read it: nothing in it may move the cursor of their terminal.
    let message = plain(&message);
    Ok(match status {
        0 => Answer::Ready(message),
        other => Answer::Refused { code: FailureCode::from_status(other), message },
    })
}

async fn write_framed<W: AsyncWrite + Unpin>(
    writer: &mut W,
    kind: u8,
    body: &[u8],
) -> Result<(), ServiceError> {
    let too_long = ServiceError::TooLong { length: body.len(), limit: BODY_MAX };
    if body.len() > BODY_MAX {
        return Err(too_long);
    }
    let length = u16::try_from(body.len()).map_err(|_| too_long)?;
    let mut message = Vec::with_capacity(3 + body.len());
    message.push(kind);
    message.extend_from_slice(&length.to_be_bytes());
    message.extend_from_slice(body);
    writer.write_all(&message).await?;
    writer.flush().await?;
    Ok(())
}

async fn read_framed<R: AsyncRead + Unpin>(reader: &mut R) -> Result<(u8, Vec<u8>), ServiceError> {
    let mut head = [0; 3];
    reader.read_exact(&mut head).await?;
    let length = usize::from(u16::from_be_bytes([head[1], head[2]]));
    if length > BODY_MAX {
        return Err(ServiceError::TooLong { length, limit: BODY_MAX });
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).await?;
    Ok((head[0], body))
}

/// A report as it goes over a stream: `u32` length (big-endian), JSON.
///
/// # Errors
/// It is too long.
pub fn encode_report(report: &impl Serialize) -> Result<Vec<u8>, ServiceError> {
    let body = serde_json::to_vec(report)?;
    let too_long = ServiceError::TooLong { length: body.len(), limit: REPORT_MAX };
    if body.len() > REPORT_MAX {
        return Err(too_long);
    }
    let length = u32::try_from(body.len()).map_err(|_| too_long)?;
    Ok([&length.to_be_bytes()[..], &body].concat())
}

/// Writes a report.
pub async fn write_report<W: AsyncWrite + Unpin, T: Serialize>(
    writer: &mut W,
    report: &T,
) -> Result<(), ServiceError> {
    writer.write_all(&encode_report(report)?).await?;
    writer.flush().await?;
    Ok(())
}

/// Reads a report.
pub async fn read_report<R: AsyncRead + Unpin, T: DeserializeOwned>(
    reader: &mut R,
) -> Result<T, ServiceError> {
    let length = reader.read_u32().await? as usize;
    if length > REPORT_MAX {
        return Err(ServiceError::TooLong { length, limit: REPORT_MAX });
    }
    // Grows with what arrives, so that an announced length alone costs no memory.
    let mut body = Vec::new();
    reader.take(length as u64).read_to_end(&mut body).await?;
    if body.len() < length {
        return Err(std::io::Error::from(std::io::ErrorKind::UnexpectedEof).into());
    }
    Ok(serde_json::from_slice(&body)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::service::{
        BenchDirection, BenchLimit, BenchRequest, BenchStreamRequest, ConnectRequest, ReportRequest,
    };
    use proptest::prelude::*;

    fn block_on<T>(future: impl Future<Output = T>) -> T {
        tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
    }

    fn round_trip(request: &Request) -> Request {
        block_on(async {
            let mut bytes = Vec::new();
            write_request(&mut bytes, request).await.unwrap();
            read_request(&mut bytes.as_slice()).await.unwrap()
        })
    }

    #[test]
    fn bench_requests_round_trip() {
        let request = Request::Bench(BenchRequest {
            id: 7,
            direction: BenchDirection::ServerToClient,
            streams: 4,
            limit: BenchLimit::Seconds(2.5),
            warmup_s: 1.0,
            interval_s: 0.1,
            verify: true,
        });
        assert_eq!(round_trip(&request), request);
        let stream = Request::BenchStream(BenchStreamRequest { id: 7, index: 3 });
        assert_eq!(round_trip(&stream), stream);
        let report = Request::Report(ReportRequest::default());
        assert_eq!(round_trip(&report), report);
    }

    #[test]
    fn every_failure_code_round_trips() {
        for code in FailureCode::ALL {
            let answer = Answer::Refused { code, message: "no".to_owned() };
            let back = block_on(async {
                let mut bytes = Vec::new();
                write_answer(&mut bytes, &answer).await.unwrap();
                read_answer(&mut bytes.as_slice()).await.unwrap()
            });
            assert_eq!(back, answer);
        }
    }

    #[test]
    fn an_answer_is_plain_text() {
        let body = br#"{"message": "\u001b[2Jno\r\nto \u009b31myou\u202e"}"#;
        let bytes = [&[2, 0, body.len() as u8][..], body].concat();
        let expected = " [2Jno  to  31myou\u{fffd}".to_owned();
        let refused = Answer::Refused { code: FailureCode::NotAllowed, message: expected };
        assert_eq!(block_on(read_answer(&mut bytes.as_slice())).unwrap(), refused);
    }

    #[test]
    fn a_long_message_is_cut_not_refused() {
        let answer = Answer::Ready("é".repeat(100_000));
        let back = block_on(async {
            let mut bytes = Vec::new();
            write_answer(&mut bytes, &answer).await.unwrap();
            read_answer(&mut bytes.as_slice()).await.unwrap()
        });
        assert_eq!(back, Answer::Ready("é".repeat(500)));
    }

    #[test]
    fn limits_hold() {
        let long = [1, 0xff, 0xff];
        assert!(matches!(
            block_on(read_request(&mut long.as_slice())),
            Err(ServiceError::TooLong { .. })
        ));
        let unknown = [9, 0, 0];
        assert!(matches!(
            block_on(read_request(&mut unknown.as_slice())),
            Err(ServiceError::UnknownKind(9))
        ));
        let report = [0xff_u8; 8];
        assert!(matches!(
            block_on(read_report::<_, serde_json::Value>(&mut report.as_slice())),
            Err(ServiceError::TooLong { .. })
        ));
    }

    proptest! {
        #[test]
        fn connect_round_trips(host in "\\PC{0,200}", port: u16, class: Option<String>) {
            let request = Request::Connect(ConnectRequest { host, port, class });
            prop_assert_eq!(round_trip(&request), request);
        }

        #[test]
        fn garbage_never_panics(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = block_on(read_request(&mut bytes.as_slice()));
            let _ = block_on(read_answer(&mut bytes.as_slice()));
            let _ = block_on(read_report::<_, serde_json::Value>(&mut bytes.as_slice()));
        }
    }
}
