//! The client's part of a measurement.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use tokio::task::JoinSet;

use super::observer::observe;
use super::report::{BenchReport, EndReport, Frame, SendingReport, compose};
use super::run::{Plan, PlanError, Run};
use super::transfer::{receive, send};
use crate::service::{
    Answer, BenchDirection, BenchRequest, BenchStreamRequest, Request, ServiceError, read_answer,
    read_report, write_request,
};
use crate::tunnel::{ReportSource, Tunnel, TunnelError, Use};

/// How long what is under way may take after the time is over.
const DRAIN: Duration = Duration::from_secs(30);

/// Why a measurement failed.
#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    /// The request makes no sense.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// No stream could be opened.
    #[error(transparent)]
    Tunnel(#[from] TunnelError),
    /// The service protocol failed.
    #[error("the measurement's control stream failed: {0}")]
    Service(#[from] ServiceError),
    /// The server refused.
    #[error("the server refused the measurement: {0}")]
    Refused(String),
    /// The other end has no messages.
    #[error(
        "this session has no messages: the server speaks wire version 1, or plaintext; update it, or measure streams"
    )]
    NoMessages,
    /// A data stream failed.
    #[error("a data stream failed: {0}")]
    Stream(std::io::Error),
    /// It never ended.
    #[error("the transfer did not end within 30 s of its time; `sumrate status` shows the paths")]
    NoEnd,
    /// It stands still.
    #[error(
        "nothing has moved for {0:?}; is the server up? `--stall-timeout` changes how long to wait"
    )]
    Stalled(Duration),
    /// A wrong byte.
    #[error("the byte at offset {0} is not the one that was sent; please report this")]
    Damaged(u64),
    /// The other end's report lacks what it received.
    #[error("the server's report is incomplete; are both ends of the same version?")]
    Incomplete,
}

/// Measures over a session. `progress` is told the bytes so far from time to time; a measurement of
/// bytes fails when nothing has moved for `stall`, if that is given.
///
/// # Errors
/// [`BenchError`]
pub async fn measure<T: Tunnel>(
    tunnel: &T,
    request: BenchRequest,
    sending: &SendingReport,
    stall: Option<Duration>,
    command: Vec<String>,
    progress: impl Fn(u64),
) -> Result<BenchReport, BenchError> {
    let plan = Plan::try_from(&request)?;
    let run = Arc::new(Run::new(plan));
    let mut control = tunnel.open(Use::Interactive).await?;
    write_request(&mut control, &Request::Bench(request.clone())).await?;
    accepted(read_answer(&mut control).await?)?;
    let source: ReportSource = {
        let tunnel = tunnel.clone();
        Arc::new(move || tunnel.report())
    };
    let first = source();
    let begun = Instant::now();
    let transfer = transfer(tunnel, &run, &request);
    let observation = observe(&run, &source, first);
    let both = async { tokio::join!(transfer, observation) };
    let moving = with_progress(&run, progress, within_time(&plan, both));
    let (outcome, observation) = tokio::select! {
        ended = moving => ended?,
        stalled = stalled(&run, &source, stall.filter(|_| plan.bytes.is_some())) => {
            return Err(stalled);
        }
    };
    outcome?;
    let elapsed_s = begun.elapsed().as_secs_f64();
    let receiver = request.direction == BenchDirection::ServerToClient;
    let here = EndReport::new(&run, observation, receiver, sending);
    let there: EndReport = tokio::time::timeout(DRAIN, read_report(&mut control))
        .await
        .map_err(|_| BenchError::NoEnd)??;
    if let Some(offset) = here.damaged_at.or(there.damaged_at) {
        return Err(BenchError::Damaged(offset));
    }
    let frame = Frame { command, direction: request.direction, elapsed_s };
    compose(frame, &run, &here, &there).ok_or(BenchError::Incomplete)
}

pub(super) fn accepted(answer: Answer) -> Result<(), BenchError> {
    match answer {
        Answer::Ready(_) => Ok(()),
        Answer::Refused { message, .. } => Err(BenchError::Refused(message)),
    }
}

/// Opens the data streams, all before the first byte, and moves the bytes.
async fn transfer<T: Tunnel>(
    tunnel: &T,
    run: &Arc<Run>,
    request: &BenchRequest,
) -> Result<(), BenchError> {
    // However this ends, the observer must not wait for more.
    let _finish = FinishOnDrop(run);
    let mut streams = Vec::new();
    for index in 0..run.plan.streams {
        let mut stream = tunnel.open(Use::Bulk).await?;
        let body = BenchStreamRequest { id: request.id, index };
        write_request(&mut stream, &Request::BenchStream(body)).await?;
        streams.push(stream);
    }
    run.meter.ask(Instant::now());
    // Answers are read once all is asked: a thousand streams must not take a thousand RTTs.
    for stream in &mut streams {
        accepted(read_answer(stream).await?)?;
    }
    let mut tasks = JoinSet::new();
    for (index, mut stream) in (0..).zip(streams) {
        let (run, direction) = (Arc::clone(run), request.direction);
        tasks.spawn(async move {
            match direction {
                BenchDirection::ClientToServer => send(&run, &mut stream, index).await,
                BenchDirection::ServerToClient => receive(&run, &mut stream).await,
            }
        });
    }
    while let Some(ended) = tasks.join_next().await {
        ended.map_err(std::io::Error::other).and_then(|moved| moved).map_err(BenchError::Stream)?;
    }
    Ok(())
}

struct FinishOnDrop<'a>(&'a Run);

impl Drop for FinishOnDrop<'_> {
    fn drop(&mut self) {
        self.0.finish();
    }
}

async fn within_time<F: Future>(plan: &Plan, future: F) -> Result<F::Output, BenchError> {
    match plan.length {
        Some(length) => tokio::time::timeout(plan.warmup + length + DRAIN, future)
            .await
            .map_err(|_| BenchError::NoEnd),
        None => Ok(future.await),
    }
}

async fn with_progress<F: Future>(run: &Run, progress: impl Fn(u64), future: F) -> F::Output {
    let mut future = std::pin::pin!(future);
    let mut tick = tokio::time::interval(Duration::from_millis(250));
    loop {
        tokio::select! {
            output = &mut future => return output,
            _ = tick.tick() => progress(run.moved.load(Ordering::Relaxed)),
        }
    }
}

/// Ends when nothing has moved for `limit`. Bytes that the sender's application has written may take
/// long to leave, so that the session's counters are looked at too.
async fn stalled(run: &Run, source: &ReportSource, limit: Option<Duration>) -> BenchError {
    let Some(limit) = limit else { return std::future::pending().await };
    let moved = || {
        let session = source().map(|session| {
            let acknowledged: u64 = session.streams.iter().map(|s| s.acknowledged_bytes).sum();
            (session.sent_bytes, session.received_bytes, acknowledged)
        });
        (run.moved.load(Ordering::Relaxed), session)
    };
    let (mut last, mut since) = (moved(), tokio::time::Instant::now());
    let pause = (limit / 10).clamp(Duration::from_millis(10), Duration::from_secs(1));
    loop {
        tokio::time::sleep(pause).await;
        let now = moved();
        if now != last {
            (last, since) = (now, tokio::time::Instant::now());
        } else if since.elapsed() >= limit {
            return BenchError::Stalled(limit);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::{BenchHost, WindowReport};
    use crate::service::{BenchLimit, read_request};
    use crate::tunnel::in_memory::{PipeTunnel, pipe_tunnel};

    fn sending(scheduler: &str) -> SendingReport {
        SendingReport {
            congestion_control: "cubic".to_owned(),
            shared_bottleneck: false,
            scheduler: scheduler.to_owned(),
            window_mode: "pipelined".to_owned(),
            redundancy: "off".to_owned(),
            coupling: "off".to_owned(),
            window_bytes: WindowReport { min: 1, max: 2 },
        }
    }

    /// A tunnel whose server end only measures.
    fn server() -> PipeTunnel {
        let (tunnel, mut streams) = pipe_tunnel();
        let host = Arc::new(BenchHost::new(Arc::new(|| None), sending("server's")));
        tokio::spawn(async move {
            while let Some(mut stream) = streams.recv().await {
                let host = Arc::clone(&host);
                tokio::spawn(async move {
                    match read_request(&mut stream).await {
                        Ok(Request::Bench(request)) => host.control(stream, request).await,
                        Ok(Request::BenchStream(request)) => host.data(stream, request).await,
                        _ => Ok(()),
                    }
                });
            }
        });
        tunnel
    }

    fn request(direction: BenchDirection, limit: BenchLimit) -> BenchRequest {
        BenchRequest {
            id: 9,
            direction,
            streams: 3,
            limit,
            warmup_s: 0.0,
            interval_s: 0.01,
            verify: true,
        }
    }

    #[tokio::test]
    async fn both_directions_count_every_byte() {
        for direction in [BenchDirection::ClientToServer, BenchDirection::ServerToClient] {
            let tunnel = server();
            let asked = request(direction, BenchLimit::Bytes(5_000_000));
            let here = sending("client's");
            let report = measure(&tunnel, asked, &here, None, vec!["sumrate".to_owned()], |_| {})
                .await
                .unwrap();
            assert_eq!(report.bytes, 5_000_000);
            assert!(report.verified && report.goodput_mbps > 0.0);
            assert!(report.stream_goodput_mbps.min > 0.0 && report.jain_index > 1.0 / 3.0);
            let sent_by_client = direction == BenchDirection::ClientToServer;
            assert_eq!(report.scheduler == "client's", sent_by_client);
        }
    }

    #[tokio::test]
    async fn a_timed_run_has_its_intervals() {
        let tunnel = server();
        let asked = request(BenchDirection::ClientToServer, BenchLimit::Seconds(0.05));
        let report =
            measure(&tunnel, asked, &sending("x"), None, Vec::new(), |_| {}).await.unwrap();
        assert_eq!(report.intervals.len(), 5);
        assert!((report.duration_s - 0.05).abs() < 1e-9);
    }

    #[tokio::test]
    async fn an_impossible_request_never_leaves() {
        let (tunnel, _streams) = pipe_tunnel();
        let asked = request(BenchDirection::ClientToServer, BenchLimit::Bytes(0));
        let outcome = measure(&tunnel, asked, &sending("x"), None, Vec::new(), |_| {}).await;
        assert!(matches!(outcome, Err(BenchError::Plan(PlanError::NoBytes))));
    }

    /// A server that accepts and then takes nothing.
    #[tokio::test(start_paused = true)]
    async fn a_transfer_that_stands_still_is_given_up() {
        let (tunnel, mut streams) = pipe_tunnel();
        tokio::spawn(async move {
            let mut held = Vec::new();
            while let Some(mut stream) = streams.recv().await {
                read_request(&mut stream).await.unwrap();
                crate::service::write_answer(&mut stream, &Answer::Ready(String::new()))
                    .await
                    .unwrap();
                held.push(stream);
            }
        });
        for direction in [BenchDirection::ClientToServer, BenchDirection::ServerToClient] {
            let asked = request(direction, BenchLimit::Bytes(5_000_000));
            let patience = Duration::from_secs(3);
            let outcome =
                measure(&tunnel, asked, &sending("x"), Some(patience), Vec::new(), |_| {}).await;
            assert!(matches!(outcome, Err(BenchError::Stalled(waited)) if waited == patience));
        }
    }
}
