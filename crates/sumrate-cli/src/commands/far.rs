//! What the server says of the session's paths, asked while somebody looks: which path brings what, and
//! why, is decided there. Nobody is asked otherwise, so that an idle client sends nothing.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use fbdt::{Class, Health, Session};
use tokio::io::AsyncWriteExt;
use tokio::sync::{Notify, watch};

use super::event::session_id;
use crate::service::{
    Answer, FailureCode, ReportRequest, Request, ServiceError, read_answer, read_report,
    write_request,
};
use crate::sessions::Sessions;
use crate::status::{FarReport, StatusReport};

/// Least time between two questions: what was said is new for as long.
const INTERVAL: Duration = Duration::from_millis(500);
/// How long whoever looks waits for what is new.
const PATIENCE: Duration = Duration::from_millis(300);
/// Longest time for an answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(3);
/// How long what was said is shown.
const KEPT: Duration = Duration::from_secs(4);

/// As many of the last questions are known by their streams, which outlive their answers until the
/// other end has confirmed their ends.
const QUESTIONS_KEPT: usize = 8;

/// What came of the last question.
#[derive(Debug, Clone)]
struct Told {
    at: Instant,
    /// The session's id and what was said of it, if anything was.
    said: Option<(String, FarReport)>,
}

/// The other end, as far as it says what it does.
#[derive(Debug, Default)]
pub(super) struct FarEnd {
    wanted: Notify,
    told: watch::Sender<Option<Told>>,
    /// The sessions and streams of the last questions: they are nobody's traffic.
    questions: watch::Sender<VecDeque<(String, u32)>>,
}

impl FarEnd {
    /// Somebody looks: the server is asked, if it was not just now.
    pub(super) fn want(&self) {
        self.wanted.notify_one();
    }

    /// The same, and waits a moment for the answer.
    pub(super) async fn look(&self) {
        let mut told = self.told.subscribe();
        self.want();
        let is_new = told.borrow().as_ref().is_some_and(|told| told.at.elapsed() < INTERVAL);
        if !is_new {
            // What is late is shown at the next look.
            let _ = tokio::time::timeout(PATIENCE, told.changed()).await;
        }
    }

    /// Adds what was said lately.
    pub(super) fn annotate(&self, report: &mut StatusReport) {
        let told = self.told.borrow().clone().filter(|told| told.at.elapsed() < KEPT);
        let said = told.and_then(|told| told.said);
        for session in &mut report.sessions {
            if let Some((_, far)) = said.as_ref().filter(|(of, _)| *of == session.id) {
                session.exit_families.clone_from(&far.families);
                for path in &mut session.paths {
                    path.far = far.paths.get(&path.name).cloned();
                }
                for stream in &mut session.streams {
                    stream.far_class = far.classes.get(&stream.id).cloned();
                }
            }
            let questions = self.questions.borrow();
            let asks =
                |stream: u32| questions.iter().any(|(of, id)| (of, *id) == (&session.id, stream));
            session.streams.retain(|open| !asks(open.id));
        }
    }

    /// Asks whenever somebody looks, until the future is dropped.
    pub(super) async fn ask(&self, sessions: &Sessions) {
        let newest = sessions.subscribe();
        // A server of an earlier version, which need not be asked again.
        let mut silent = None;
        loop {
            self.wanted.notified().await;
            let session = newest.borrow().clone().filter(can_answer);
            let session = session.filter(|session| silent != Some(session.id()));
            let mut said = None;
            if let Some(session) = session {
                match tokio::time::timeout(ANSWER_TIMEOUT, self.exchange(&session)).await {
                    Ok(Ok(Some(report))) => said = Some((session_id(&session), report)),
                    Ok(Ok(None)) => silent = Some(session.id()),
                    Ok(Err(error)) => {
                        tracing::debug!(%error, "the server does not say what it does");
                    }
                    Err(_) => tracing::debug!("the server does not say in time what it does"),
                }
            }
            self.told.send_replace(Some(Told { at: Instant::now(), said }));
            tokio::time::sleep(INTERVAL).await;
        }
    }

    /// Whether the server has a way to IPv6 addresses; nothing where it does not say.
    pub(super) async fn reaches_ipv6(&self, session: &Session) -> Option<bool> {
        let exchange = self.exchange(session);
        let said = tokio::time::timeout(ANSWER_TIMEOUT, exchange).await.ok()?.ok()??.families;
        (!said.is_empty()).then(|| said.iter().any(|family| family == "ipv6"))
    }

    fn asked(&self, session: &str, stream: u32) {
        self.questions.send_modify(|questions| {
            questions.truncate(QUESTIONS_KEPT - 1);
            questions.push_front((session.to_owned(), stream));
        });
    }

    /// One question; nothing where the server does not know it.
    async fn exchange(&self, session: &Session) -> Result<Option<FarReport>, ServiceError> {
        let mut stream =
            session.try_open_stream(Class::Interactive).map_err(std::io::Error::other)?;
        self.asked(&session_id(session), stream.id().0);
        write_request(&mut stream, &Request::Report(ReportRequest::default())).await?;
        stream.shutdown().await?;
        match read_answer(&mut stream).await? {
            Answer::Ready(_) => Ok(Some(read_report::<_, FarReport>(&mut stream).await?.plain())),
            Answer::Refused { code: FailureCode::Unsupported, .. } => Ok(None),
            Answer::Refused { message, .. } => Err(std::io::Error::other(message).into()),
        }
    }
}

/// Whether a question would go out at once.
fn can_answer(session: &Session) -> bool {
    !session.is_closed() && session.paths().iter().any(|path| path.health == Health::Active)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status::{DelayReport, SessionReport, StreamReport};

    fn stream(id: u32) -> StreamReport {
        StreamReport {
            id,
            class: "interactive".to_owned(),
            class_guessed: false,
            far_class: None,
            written_bytes: 0,
            acknowledged_bytes: 0,
            received_bytes: 0,
            receive_memory_bytes: 0,
            receive_buffer_peak_bytes: 0,
            in_order_delay_ms: DelayReport::default(),
            longest_stall_ms: 0.0,
            open_windows: 0,
        }
    }

    fn session(id: &str, streams: impl IntoIterator<Item = u32>) -> SessionReport {
        let streams = streams.into_iter().map(stream).collect();
        SessionReport { id: id.to_owned(), streams, ..SessionReport::default() }
    }

    #[test]
    fn the_last_questions_are_nobodys_streams_even_once_they_are_answered() {
        let far = FarEnd::default();
        let most = u32::try_from(QUESTIONS_KEPT).expect("few");
        for id in 0..=most {
            far.asked("a", id);
        }
        let sessions = vec![session("a", 0..=most + 1), session("b", [most])];
        let mut report = StatusReport { sessions, ..StatusReport::default() };
        far.annotate(&mut report);
        let left: Vec<Vec<u32>> = report
            .sessions
            .iter()
            .map(|session| session.streams.iter().map(|stream| stream.id).collect())
            .collect();
        assert_eq!(left, [vec![0, most + 1], vec![most]], "only its own, and not for ever");
    }

    #[test]
    fn what_the_server_takes_a_stream_for_is_shown_beside_it() {
        let far = FarEnd::default();
        let classes = [(3, "background".to_owned())].into();
        let said = Some(("a".to_owned(), FarReport { classes, ..FarReport::default() }));
        far.told.send_replace(Some(Told { at: Instant::now(), said }));
        let sessions = vec![session("a", [1, 3]), session("b", [3])];
        let mut report = StatusReport { sessions, ..StatusReport::default() };
        far.annotate(&mut report);
        let classes = |index: usize| {
            let streams = report.sessions[index].streams.iter();
            streams.map(|stream| stream.far_class.as_deref()).collect::<Vec<_>>()
        };
        assert_eq!((classes(0), classes(1)), (vec![None, Some("background")], vec![None]));
    }
}
