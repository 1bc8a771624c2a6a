//! The transport behind the seam of [`tunnel`](crate::tunnel).

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use fbdt::{Class, ClassHandle, Messages, Session, Stream};
use tokio::sync::watch;

use crate::crowd::{Bounds, Crowd};
use crate::flows::Flows;
use crate::output::without_codes;
use crate::refusals::Refusals;
use crate::status::{PathErrorReport, Seen, SessionReport};
use crate::tunnel::{Delivery, Tunnel, TunnelError, TunnelStream, Use};

/// How long a stream may wait for a session: whoever asks for one waits for 25 s in all.
const PATIENCE: Duration = Duration::from_secs(20);

impl TunnelStream for Stream {
    fn abort(&mut self, code: u32) {
        self.reset(code);
        self.stop_sending(code);
    }

    async fn read_piece(&mut self, max: usize) -> io::Result<Option<Bytes>> {
        self.read_chunk(max).await
    }

    async fn write_piece(&mut self, bytes: &mut Bytes) -> io::Result<usize> {
        std::future::poll_fn(|cx| self.poll_write_chunk(cx, bytes)).await
    }

    fn class_setter(&self) -> Option<ClassHandle> {
        Some(self.class_handle())
    }

    fn messages(&self) -> Option<Messages> {
        Stream::messages(self)
    }

    fn owed(&self) -> u64 {
        self.stats().map_or(0, |stats| stats.written.saturating_sub(stats.acknowledged))
    }

    fn delivery(&self) -> Option<Delivery> {
        self.stats().as_ref().map(Delivery::from)
    }
}

/// The client's session of the moment: it is replaced when it is lost.
#[derive(Clone)]
pub struct SessionTunnel {
    sessions: watch::Receiver<Option<Session>>,
    flows: Option<Arc<Flows>>,
    refusals: Option<Arc<Refusals>>,
    pending: Option<Arc<Crowd>>,
    refusal: Option<Refusal>,
}

/// Waits until no stream is opened, and says why.
type Refusal = Arc<dyn Fn() -> Pin<Box<dyn Future<Output = String> + Send>> + Send + Sync>;

impl SessionTunnel {
    /// A tunnel over whatever session the channel holds.
    pub fn new(sessions: watch::Receiver<Option<Session>>) -> Self {
        Self { sessions, flows: None, refusals: None, pending: None, refusal: None }
    }

    /// A tunnel over one session for good.
    pub fn fixed(session: Session) -> Self {
        Self::new(watch::Sender::new(Some(session)).subscribe())
    }

    /// The same, whose UDP flows are counted.
    #[must_use]
    pub fn counting(self, flows: Arc<Flows>) -> Self {
        Self { flows: Some(flows), ..self }
    }

    /// The same, whose refused destinations are noted.
    #[must_use]
    pub fn noting(self, refusals: Arc<Refusals>) -> Self {
        Self { refusals: Some(refusals), ..self }
    }

    /// The same for proxies of so many connections each: those that are being made take half of them at
    /// most, so that targets that do not answer leave room for others.
    #[must_use]
    pub fn bounded(self, connections: u32) -> Self {
        let most = (connections / 2).max(1);
        Self { pending: Some(Crowd::new(Bounds::of_one(most as usize))), ..self }
    }

    /// The same, which opens no stream once `why` gives a reason.
    #[must_use]
    pub fn refusing<F>(self, why: impl Fn() -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = String> + Send + 'static,
    {
        Self { refusal: Some(Arc::new(move || Box::pin(why()))), ..self }
    }

    fn current(&self) -> Option<Session> {
        self.sessions.borrow().clone()
    }

    /// The session, or the one that is being dialled: what a program asks for between two need not
    /// fail.
    async fn soon(&self) -> Option<Session> {
        let mut sessions = self.sessions.clone();
        let there = sessions.wait_for(Option::is_some);
        tokio::time::timeout(PATIENCE, there).await.ok()?.ok()?.clone()
    }
}

impl Tunnel for SessionTunnel {
    type Stream = Stream;

    async fn open(&self, purpose: Use) -> Result<Stream, TunnelError> {
        let session = tokio::select! {
            biased;
            why = self.unreachable() => return Err(TunnelError::Unreachable(why)),
            session = self.soon() => session.ok_or(TunnelError::NoSession)?,
        };
        let class = match purpose {
            Use::Interactive => Class::Interactive,
            Use::Bulk => Class::Background,
            Use::Known(class) => class,
        };
        session.try_open_stream(class).map_err(|error| TunnelError::Refused(error.to_string()))
    }

    async fn unreachable(&self) -> String {
        match &self.refusal {
            Some(refusal) => refusal().await,
            None => std::future::pending().await,
        }
    }

    async fn replaced(&self) {
        let mut sessions = self.sessions.clone();
        let before = sessions.borrow_and_update().as_ref().map(Session::id);
        let is_other = |now: &Option<Session>| {
            now.as_ref().is_some_and(|now| before.is_some_and(|before| before != now.id()))
        };
        if sessions.wait_for(is_other).await.is_err() {
            std::future::pending().await
        }
    }

    fn report(&self) -> Option<SessionReport> {
        self.current().as_ref().map(report)
    }

    fn flows(&self) -> Option<Arc<Flows>> {
        self.flows.clone()
    }

    fn pending(&self) -> Option<&Arc<Crowd>> {
        self.pending.as_ref()
    }

    fn refusals(&self) -> Option<&Refusals> {
        self.refusals.as_deref()
    }
}

/// What a session is doing now.
pub fn report(session: &Session) -> SessionReport {
    let text = |address: Option<std::net::SocketAddr>| address.map(|address| address.to_string());
    let seen = session
        .paths()
        .into_iter()
        .map(|path| {
            let last_error = path.last_error.map(|error| PathErrorReport {
                trouble: error.trouble.name().to_owned(),
                reason: without_codes(&error.reason),
                ago_s: error.at.elapsed().as_secs_f64(),
                interface_gone: error.interface_gone,
            });
            let (local, remote) = (text(path.local), text(path.remote));
            (path.name, Seen { local, remote, last_error })
        })
        .collect();
    let credential = session.credential().map(|credential| credential.name.clone());
    SessionReport { credential, ..SessionReport::new(session.id(), session.stats(), seen) }
}
