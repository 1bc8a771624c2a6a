//! The server's part of measurements, one host per session.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::io::AsyncReadExt;

use super::observer::observe;
use super::report::{EndReport, SendingReport};
use super::run::{Plan, Run};
use super::transfer::{receive, send};
use crate::service::{
    Answer, BenchDirection, BenchRequest, BenchStreamRequest, FailureCode, ServiceError,
    write_answer, write_report,
};
use crate::tunnel::{ReportSource, TunnelStream};

/// Most measurements of one session at a time.
const RUNS_MAX: usize = 16;
/// How long a measurement may outlive its own time.
const DRAIN: Duration = Duration::from_secs(60);

struct Hosted {
    direction: BenchDirection,
    run: Run,
}

/// Measurements of one session.
pub struct BenchHost {
    runs: Mutex<HashMap<u64, Arc<Hosted>>>,
    source: ReportSource,
    sending: SendingReport,
}

impl BenchHost {
    /// A host whose session is seen through `source` and sends as `sending` says.
    pub fn new(source: ReportSource, sending: SendingReport) -> Self {
        Self { runs: Mutex::default(), source, sending }
    }

    fn runs(&self) -> MutexGuard<'_, HashMap<u64, Arc<Hosted>>> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Serves a control stream to its end.
    ///
    /// # Errors
    /// [`ServiceError`] when the stream fails.
    pub async fn control<S: TunnelStream>(
        &self,
        mut stream: S,
        request: BenchRequest,
    ) -> Result<(), ServiceError> {
        let hosted = match self.register(&request) {
            Ok(hosted) => hosted,
            Err(refusal) => return write_answer(&mut stream, &refusal).await,
        };
        let outcome = self.follow(&mut stream, &hosted).await;
        self.runs().remove(&request.id);
        hosted.run.finish();
        outcome
    }

    fn register(&self, request: &BenchRequest) -> Result<Arc<Hosted>, Answer> {
        let refuse = |code, message: String| Answer::Refused { code, message };
        let plan = Plan::try_from(request)
            .map_err(|error| refuse(FailureCode::BadRequest, error.to_string()))?;
        let mut runs = self.runs();
        if runs.len() >= RUNS_MAX {
            let message = "the session has 16 measurements under way already".to_owned();
            return Err(refuse(FailureCode::Busy, message));
        }
        if runs.contains_key(&request.id) {
            let message = format!("measurement {} is under way already", request.id);
            return Err(refuse(FailureCode::BadRequest, message));
        }
        let hosted = Arc::new(Hosted { direction: request.direction, run: Run::new(plan) });
        runs.insert(request.id, Arc::clone(&hosted));
        Ok(hosted)
    }

    async fn follow<S: TunnelStream>(
        &self,
        stream: &mut S,
        hosted: &Hosted,
    ) -> Result<(), ServiceError> {
        let first = (self.source)();
        write_answer(stream, &Answer::Ready(String::new())).await?;
        let run = &hosted.run;
        let finished = async {
            let observation = observe(run, &self.source, first).await;
            let waited = tokio::time::timeout(DRAIN, run.done());
            match run.plan.length {
                Some(_) => drop(waited.await),
                None => run.done().await,
            }
            observation
        };
        let mut nothing = [0; 1];
        let observation = tokio::select! {
            observation = finished => observation,
            // The client has gone or given up: it says nothing more on this stream otherwise.
            _ = stream.read(&mut nothing) => return Ok(()),
        };
        let receiver = hosted.direction == BenchDirection::ClientToServer;
        let report = EndReport::new(run, observation, receiver, &self.sending);
        write_report(stream, &report).await?;
        // The client closes when it has the report.
        let _ = stream.read(&mut nothing).await?;
        Ok(())
    }

    /// Serves a data stream to its end.
    ///
    /// # Errors
    /// [`ServiceError`] when the stream fails.
    pub async fn data<S: TunnelStream>(
        &self,
        mut stream: S,
        request: BenchStreamRequest,
    ) -> Result<(), ServiceError> {
        let hosted = self.runs().get(&request.id).cloned();
        let Some(hosted) = hosted.filter(|hosted| request.index < hosted.run.plan.streams) else {
            let refusal = Answer::Refused {
                code: FailureCode::BadRequest,
                message: format!("there is no measurement {} with this stream", request.id),
            };
            return write_answer(&mut stream, &refusal).await;
        };
        let outcome = async {
            write_answer(&mut stream, &Answer::Ready(String::new())).await?;
            match hosted.direction {
                BenchDirection::ClientToServer => receive(&hosted.run, &mut stream).await?,
                BenchDirection::ServerToClient => {
                    hosted.run.stream_arrived().await;
                    send(&hosted.run, &mut stream, request.index).await?
                }
            };
            Ok(())
        };
        let outcome = outcome.await;
        hosted.run.stream_ended();
        outcome
    }
}
