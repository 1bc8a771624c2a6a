//! Delay and loss of messages: the server sends each one back.

use std::collections::HashMap;
use std::time::Duration;

use bytes::Bytes;
use fbdt::{Class, Delivery, MessageError, MessageOptions, Messages};
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use super::client::{BenchError, accepted};
use crate::service::{EchoRequest, Request, read_answer, write_request};
use crate::status::{ClassReport, MessageReport, SessionReport};
use crate::tunnel::{Tunnel, TunnelStream, Use};

/// Name and version of the JSON form.
pub const MESSAGE_BENCH_SCHEMA: &str = "sumrate.bench-messages.v1";
/// Fewest bytes of a message: its number.
pub const MESSAGE_LEAST: u16 = 8;
/// Most bytes of a message, which every server takes.
pub const MESSAGE_MOST: u16 = 4096;
/// Echoes of messages without a lifetime are waited for this long.
const PATIENCE: Duration = Duration::from_secs(10);

/// What is sent.
#[derive(Debug, Clone, Copy)]
pub struct MessagePlan {
    /// Bytes in each message, at least [`MESSAGE_LEAST`].
    pub bytes: u32,
    /// Time between two.
    pub interval: Duration,
    /// Time between the first and the last.
    pub length: Duration,
    /// After this a message is worth nothing any more.
    pub lifetime: Option<Duration>,
    /// What is done so that it arrives.
    pub delivery: Delivery,
}

/// The result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MessageBenchReport {
    /// [`MESSAGE_BENCH_SCHEMA`].
    pub schema: String,
    /// Version of the program.
    pub version: String,
    /// The command line, without secrets.
    pub command: Vec<String>,
    /// Bytes in each message.
    pub message_bytes: u32,
    /// Time between two messages.
    pub interval_ms: f64,
    /// After this a message was worth nothing any more; 0 for ever.
    pub lifetime_ms: f64,
    /// Messages that were to be sent.
    pub offered: u64,
    /// Echoes that came in time.
    pub received: u64,
    /// Share of the messages offered that did not come back in time.
    pub loss: f64,
    /// Time from a message to its echo: there and back.
    pub echo_ms: EchoReport,
    /// Longest time in which no echo came.
    pub longest_gap_ms: f64,
    /// Messages of this end's session.
    pub messages: MessageReport,
    /// Traffic classes of this end's session.
    pub classes: Vec<ClassReport>,
    /// Bytes that each path of this end sent for the first time, and as copies.
    pub paths: Vec<PathShare>,
}

/// One path's part.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathShare {
    /// Its name.
    pub name: String,
    /// Bytes sent for the first time.
    pub sent_bytes: u64,
    /// Bytes sent a second time.
    pub redundant_bytes: u64,
}

/// A distribution of times, in milliseconds; zeros without echoes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct EchoReport {
    /// The shortest.
    pub min: f64,
    /// Median.
    pub p50: f64,
    /// 99th percentile.
    pub p99: f64,
    /// 99.9th percentile.
    pub p999: f64,
    /// The longest.
    pub max: f64,
}

impl EchoReport {
    /// Of these times; a percentile is the time that so many do not exceed.
    fn of(mut times: Vec<Duration>) -> Self {
        times.sort_unstable();
        let at = |share: f64| {
            let index = (times.len() as f64 * share).ceil() as usize;
            times.get(index.max(1) - 1).map_or(0.0, |time| time.as_secs_f64() * 1e3)
        };
        Self { min: at(0.0), p50: at(0.5), p99: at(0.99), p999: at(0.999), max: at(1.0) }
    }
}

/// What was seen.
#[derive(Debug, Default)]
struct Seen {
    offered: u64,
    under_way: HashMap<u64, Instant>,
    times: Vec<Duration>,
    last: Option<Instant>,
    longest_gap: Duration,
}

impl Seen {
    /// An echo came.
    fn echo(&mut self, message: &Bytes, now: Instant) {
        let Some(number) = message.first_chunk::<8>() else { return };
        let Some(sent) = self.under_way.remove(&u64::from_be_bytes(*number)) else { return };
        self.times.push(now - sent);
        self.longest_gap = self.longest_gap.max(now - self.last.unwrap_or(sent));
        self.last = Some(now);
    }
}

/// Sends messages at a steady pace and listens for their echoes.
///
/// # Errors
/// [`BenchError`]
pub async fn measure_messages<T: Tunnel>(
    tunnel: &T,
    plan: MessagePlan,
    command: Vec<String>,
    progress: impl Fn(u64),
) -> Result<MessageBenchReport, BenchError> {
    let mut stream = tunnel.open(Use::Known(Class::Conversational)).await?;
    let messages = stream.messages().ok_or(BenchError::NoMessages)?;
    let lifetime_ms = plan.lifetime.unwrap_or_default().as_millis();
    let lifetime_ms = u32::try_from(lifetime_ms).unwrap_or(u32::MAX);
    write_request(&mut stream, &Request::Echo(EchoRequest { lifetime_ms })).await?;
    accepted(read_answer(&mut stream).await?)?;
    let mut seen = Seen::default();
    talk(&messages, plan, &mut seen, progress).await?;
    let session = tunnel.report();
    // The server stops when it hears of the end.
    stream.abort(0);
    Ok(report(plan, seen, session, command))
}

async fn talk(
    messages: &Messages,
    plan: MessagePlan,
    seen: &mut Seen,
    progress: impl Fn(u64),
) -> Result<(), BenchError> {
    let failed =
        |error: &dyn ToString| BenchError::Stream(std::io::Error::other(error.to_string()));
    let options = MessageOptions {
        lifetime: plan.lifetime,
        delivery: plan.delivery,
        ..MessageOptions::default()
    };
    let begun = Instant::now();
    let end = begun + plan.length;
    let (mut next, mut number) = (begun, 0_u64);
    let mut over = None;
    loop {
        let now = Instant::now();
        // An echo that takes longer than twice a lifetime will not come.
        let waited = plan.lifetime.map_or(PATIENCE, |lifetime| lifetime * 2);
        if next >= end && over.is_none() {
            over = Some(now + waited);
        }
        if over.is_some_and(|over| seen.under_way.is_empty() || now >= over) {
            return Ok(());
        }
        tokio::select! {
            biased;
            message = messages.receive() => {
                let message = message.map_err(|error| failed(&error))?;
                seen.echo(&message, Instant::now());
            }
            () = tokio::time::sleep_until(over.unwrap_or(next)) => if over.is_none() {
                let mut body = number.to_be_bytes().to_vec();
                body.resize(plan.bytes as usize, 0x5a);
                seen.offered += 1;
                seen.under_way.insert(number, Instant::now());
                match messages.try_send(body.into(), options) {
                    Ok(()) | Err(MessageError::Blocked) => {}
                    Err(error) => return Err(failed(&error)),
                }
                number += 1;
                next += plan.interval;
                progress(number * u64::from(plan.bytes));
            },
        }
    }
}

fn report(
    plan: MessagePlan,
    seen: Seen,
    session: Option<SessionReport>,
    command: Vec<String>,
) -> MessageBenchReport {
    let Seen { offered, times, longest_gap, .. } = seen;
    let received = times.len() as u64;
    let milliseconds = |time: Duration| time.as_secs_f64() * 1e3;
    let (messages, classes, paths) = match session {
        Some(session) => (session.messages, session.classes, session.paths),
        None => Default::default(),
    };
    let share = |path: crate::status::PathReport| PathShare {
        name: path.name,
        sent_bytes: path.sent_bytes,
        redundant_bytes: path.redundant_bytes,
    };
    MessageBenchReport {
        schema: MESSAGE_BENCH_SCHEMA.to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        command,
        message_bytes: plan.bytes,
        interval_ms: milliseconds(plan.interval),
        lifetime_ms: milliseconds(plan.lifetime.unwrap_or_default()),
        offered,
        received,
        loss: (offered - received) as f64 / offered.max(1) as f64,
        echo_ms: EchoReport::of(times),
        longest_gap_ms: milliseconds(longest_gap),
        messages,
        classes,
        paths: paths.into_iter().map(share).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tunnel::in_memory::pipe_tunnel;

    #[test]
    fn percentiles_are_the_least_that_so_many_do_not_exceed() {
        let report = EchoReport::of((1..=1000).rev().map(Duration::from_millis).collect());
        let expected = EchoReport { min: 1.0, p50: 500.0, p99: 990.0, p999: 999.0, max: 1000.0 };
        assert_eq!(report, expected);
        assert_eq!(EchoReport::of(vec![]), EchoReport::default());
        assert_eq!(EchoReport::of(vec![Duration::from_millis(7)]).p999, 7.0);
    }

    #[test]
    fn each_echo_counts_once() {
        let (now, mut seen) = (Instant::now(), Seen::default());
        seen.under_way.insert(3, now);
        let echo = Bytes::from(3_u64.to_be_bytes().to_vec());
        for _ in 0..2 {
            seen.echo(&echo, now + Duration::from_millis(5));
        }
        seen.echo(&Bytes::from_static(b"short"), now);
        assert_eq!(seen.times, [Duration::from_millis(5)]);
    }

    #[tokio::test]
    async fn a_session_without_messages_is_told_apart() {
        let (tunnel, _streams) = pipe_tunnel();
        let plan = MessagePlan {
            bytes: 200,
            interval: Duration::from_millis(10),
            length: Duration::from_secs(1),
            lifetime: None,
            delivery: Delivery::Reliable,
        };
        let outcome = measure_messages(&tunnel, plan, Vec::new(), |_| {}).await;
        assert!(matches!(outcome, Err(BenchError::NoMessages)));
    }
}
