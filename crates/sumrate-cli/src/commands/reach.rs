//! What the server does with the streams of a session.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use fbdt::{
    Class, FileAccess, Health, MemoryReservation, MessageError, MessageOptions, Session, Stream,
};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::reports::Reports;
use super::stopping::Stopping;
use crate::bench::{BenchHost, SendingReport};
use crate::classes::Guess;
use crate::crowd::Crowd;
use crate::exit::{Allowance, Allowances, Association, Dialer, Places, Readers, families};
use crate::files::{FilesHost, Transfers};
use crate::flows::Flows;
use crate::output::without_codes;
use crate::relay::relay;
use crate::service::{
    Answer, AssociateRequest, ConnectRequest, EchoRequest, FailureCode, Request, ServiceError,
    read_request, write_answer,
};
use crate::session::report;
use crate::status::{FarReport, STREAMS_REPORTED};
use crate::tunnel::ReportSource;

/// Longest time for a client to say what a stream is for.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);

/// Close code of sessions whose credential has limits that cannot be kept.
const CLOSE_LIMITS: u32 = 0x100;

/// Memory of a connection that is being made, of a relayed one, and of a UDP association beside their
/// streams: buffers, sockets, and datagrams that wait for a name.
const DIAL_MEMORY: u64 = 4 << 10;
const CONNECTION_MEMORY: u64 = 64 << 10;
const ASSOCIATION_MEMORY: u64 = 256 << 10;

/// So many connections give way for a new one, at most: each holds about as much as one more needs.
const MOST_GIVE_WAY: usize = 32;
/// Time for one of them to end.
const GIVES_WAY: Duration = Duration::from_millis(2);

/// What all sessions share.
pub(super) struct Exit {
    /// Reaches targets.
    pub(super) dialer: Dialer,
    /// The UDP associations of all sessions; one that is silent gives way.
    pub(super) associations: Arc<Crowd>,
    /// Bounds the connections of all sessions that are open or being made.
    pub(super) connections: Semaphore,
    /// What each credential may use.
    pub(super) allowances: Allowances,
    /// The directory that clients may copy files from and to.
    pub(super) files: FilesHost,
    /// How this end sends.
    pub(super) sending: SendingReport,
    /// Cancelled when the server takes on nothing new.
    pub(super) stop: CancellationToken,
    /// Since when, and for how long streams may finish.
    pub(super) stopping: Stopping,
    /// The streams that are being served.
    pub(super) work: TaskTracker,
    /// What UDP associations carry.
    pub(super) flows: Arc<Flows>,
}

impl Exit {
    /// From now on new streams and sessions are refused; those that there are have `limit` to finish.
    pub(super) fn stop(&self, limit: Duration) {
        self.stopping.begin(limit);
        self.stop.cancel();
        self.work.close();
    }

    /// Whether nothing new is taken on.
    pub(super) fn is_stopping(&self) -> bool {
        self.stop.is_cancelled()
    }

    /// Waits until it stops and no stream is being served.
    pub(super) async fn idle(&self) {
        self.work.wait().await;
    }
}

/// What the streams of one session share.
struct Share {
    exit: Arc<Exit>,
    /// The exit's, with this session's part of the lookups.
    dialer: Dialer,
    bench: BenchHost,
    /// Reports of its paths at this end, for its client.
    reports: Reports,
    /// Counts its memory and reports its paths.
    session: Session,
    allowance: Arc<Allowance>,
    /// Bounds its connections: half of what its credential may have.
    connections: Semaphore,
    /// Those that are relayed.
    readers: Readers,
    /// What it may do with files, and how many copies at a time.
    file_access: Option<FileAccess>,
    transfers: Transfers,
}

/// Serves a session's streams until the session is over.
pub(super) async fn serve_session(session: Session, exit: Arc<Exit>) {
    let source: ReportSource = {
        let session = session.clone();
        Arc::new(move || Some(report(&session)))
    };
    let bench = BenchHost::new(source, exit.sending.clone());
    let allowance = match session.credential().map(|credential| exit.allowances.of(credential)) {
        Some(Ok(allowance)) => allowance,
        Some(Err(error)) => {
            tracing::warn!(%error, "a session is closed");
            return session.close(CLOSE_LIMITS, "the credential's limits cannot be kept").await;
        }
        None => Arc::default(),
    };
    let connections = Semaphore::new(exit.allowances.connections().div_ceil(2));
    let file_access = session.credential().and_then(|credential| credential.limits.files);
    let transfers = {
        let session = session.clone();
        let is_dead = |path: fbdt::PathInfo| path.health == Health::Dead;
        Transfers::new(Arc::new(move || session.paths().into_iter().all(is_dead)))
    };
    let dialer = exit.dialer.of_session();
    let share = Arc::new(Share {
        exit,
        dialer,
        bench,
        reports: Reports::default(),
        session: session.clone(),
        allowance,
        connections,
        readers: Readers::default(),
        file_access,
        transfers,
    });
    let mut streams = JoinSet::new();
    while let Some(stream) = session.accept_stream().await {
        let share = Arc::clone(&share);
        let under_way = share.exit.work.token();
        streams.spawn(async move {
            let _under_way = under_way;
            if let Err(error) = serve_stream(stream, &share).await {
                tracing::debug!(%error, "a stream ended early");
            }
        });
        while streams.try_join_next().is_some() {}
    }
}

async fn serve_stream(mut stream: Stream, share: &Share) -> Result<(), ServiceError> {
    let Share { bench, allowance, .. } = share;
    let request = match tokio::time::timeout(REQUEST_TIMEOUT, read_request(&mut stream)).await {
        Ok(Ok(request)) => request,
        Ok(Err(error)) => return refuse_malformed(stream, error).await,
        Err(_) => return Err(std::io::Error::from(std::io::ErrorKind::TimedOut).into()),
    };
    if share.exit.is_stopping() {
        let reason = "the server is stopping".to_owned();
        return refuse(&mut stream, FailureCode::Busy, reason).await;
    }
    if let Err(error) = allowance.check_quota() {
        return refuse(&mut stream, FailureCode::NotAllowed, error.to_string()).await;
    }
    match request {
        Request::Connect(request) => connect(stream, share, &request).await,
        Request::Associate(request) => associate(stream, share, &request).await,
        Request::Files(request) => {
            let Share { exit, file_access, transfers, .. } = share;
            let Ok(_copying) = allowance.places().copies.try_acquire() else {
                let words = too_many("copies under way", Places::COPIES);
                return refuse(&mut stream, FailureCode::Busy, words).await;
            };
            exit.files.serve(stream, request, *file_access, allowance, transfers).await
        }
        Request::Report(_) => send_report(stream, share).await,
        _ if allowance.is_limited() => {
            let reason = "measurements are not for a credential with limits".to_owned();
            refuse(&mut stream, FailureCode::NotAllowed, reason).await
        }
        Request::Bench(request) => bench.control(stream, request).await,
        Request::BenchStream(request) => bench.data(stream, request).await,
        Request::Echo(request) => echo(stream, request).await,
    }
}

async fn refuse_malformed(mut stream: Stream, error: ServiceError) -> Result<(), ServiceError> {
    let code = match error {
        ServiceError::UnknownKind(_) => FailureCode::Unsupported,
        ServiceError::TooLong { .. } | ServiceError::Malformed(_) => FailureCode::BadRequest,
        ServiceError::Io(_) => return Err(error),
    };
    refuse(&mut stream, code, error.to_string()).await
}

async fn refuse(
    stream: &mut Stream,
    code: FailureCode,
    message: String,
) -> Result<(), ServiceError> {
    use tokio::io::AsyncWriteExt;
    let message = without_codes(&message);
    write_answer(stream, &Answer::Refused { code, message }).await?;
    Ok(stream.shutdown().await?)
}

/// Why a credential gets no more of something.
fn too_many(what: &str, most: usize) -> String {
    format!(
        "the sessions of this credential have {most} {what}, as many as one credential may; wait for one to end, or use another credential"
    )
}

/// Sends one report of the session's paths at this end.
async fn send_report(mut stream: Stream, share: &Share) -> Result<(), ServiceError> {
    use tokio::io::AsyncWriteExt;
    let make = || {
        let (paths, classes) = share.session.path_stats(STREAMS_REPORTED);
        let families = families().into_iter().map(str::to_owned).collect();
        FarReport { families, ..FarReport::new(paths, classes) }
    };
    let report = share.reports.newest(share.allowance.places(), make).await?;
    share.allowance.take(report.len()).await?;
    write_answer(&mut stream, &Answer::Ready(String::new())).await?;
    stream.write_all(&report).await?;
    Ok(stream.shutdown().await?)
}

/// Counts memory for what the server does for a session; refuses the stream where none is left, even if
/// connections whose programs do not read give way.
async fn reserve(
    stream: &mut Stream,
    share: &Share,
    bytes: u64,
) -> Result<Option<MemoryReservation>, ServiceError> {
    let mut reserved = share.session.reserve_memory(bytes);
    for _ in 0..MOST_GIVE_WAY {
        if reserved.is_some() {
            break;
        }
        let Some(waited) = share.readers.make_room() else { break };
        tracing::debug!(?waited, "a connection whose program does not read makes room");
        tokio::time::sleep(GIVES_WAY).await;
        reserved = share.session.reserve_memory(bytes);
    }
    if reserved.is_none() {
        let words = "the sessions of the server, or of this credential, hold all memory that they may; close some connections, or try again later";
        refuse(stream, FailureCode::Busy, words.to_owned()).await?;
    }
    Ok(reserved)
}

/// Relays datagrams, each a message of the stream.
async fn associate(
    mut stream: Stream,
    share: &Share,
    request: &AssociateRequest,
) -> Result<(), ServiceError> {
    let Share { exit, dialer, allowance, .. } = share;
    let Some(messages) = stream.messages() else {
        let words = "this session has no messages: the client speaks wire version 1".to_owned();
        return refuse(&mut stream, FailureCode::Unsupported, words).await;
    };
    let Some(_memory) = reserve(&mut stream, share, ASSOCIATION_MEMORY).await? else {
        return Ok(());
    };
    let place = exit.associations.enter(dialer.owner("", allowance));
    let (class, flow) = (stream.class_handle(), exit.flows.begin());
    let mut association = Association::new(dialer.clone(), messages, class, flow).await?;
    if let Some(class) = request.class.as_deref().and_then(Class::from_name) {
        association.name_class(class);
    }
    write_answer(&mut stream, &Answer::Ready(String::new())).await?;
    tokio::select! {
        relayed = association.relay(&mut stream, allowance, &place) => Ok(relayed?),
        () = place.evicted() => Ok(()),
    }
}

/// Sends each message back until the stream ends.
async fn echo(mut stream: Stream, request: EchoRequest) -> Result<(), ServiceError> {
    use tokio::io::AsyncReadExt;
    let Some(messages) = stream.messages() else {
        let words = "this session has no messages: the client speaks wire version 1".to_owned();
        return refuse(&mut stream, FailureCode::Unsupported, words).await;
    };
    write_answer(&mut stream, &Answer::Ready(String::new())).await?;
    let lifetime = Some(Duration::from_millis(request.lifetime_ms.into()));
    let options = MessageOptions {
        lifetime: lifetime.filter(|lifetime| !lifetime.is_zero()),
        ..MessageOptions::default()
    };
    let mut word = [0; 1];
    loop {
        tokio::select! {
            message = messages.receive() => {
                let message = message.map_err(std::io::Error::other)?;
                match messages.try_send(message, options) {
                    Ok(()) | Err(MessageError::Blocked) => {}
                    Err(error) => return Err(std::io::Error::other(error).into()),
                }
            }
            _ = stream.read(&mut word) => return Ok(()),
        }
    }
}

/// Waits until the client wants the stream no more: nobody is dialled then.
async fn given_up(stream: &mut Stream) {
    if stream.read_chunk(0).await.is_ok() {
        // Data, or the end of it: an answer is wanted.
        std::future::pending::<()>().await;
    }
}

async fn connect(
    mut stream: Stream,
    share: &Share,
    request: &ConnectRequest,
) -> Result<(), ServiceError> {
    let Share { exit, dialer, allowance, .. } = share;
    let Some(memory) = reserve(&mut stream, share, DIAL_MEMORY).await? else {
        return Ok(());
    };
    let Ok(_connection_of_session) = share.connections.try_acquire() else {
        let words = "this session has as many connections open as one session may; close some";
        return refuse(&mut stream, FailureCode::Busy, words.to_owned()).await;
    };
    let Ok(_connection) = allowance.places().connections.try_acquire() else {
        let words = "the sessions of this credential have as many connections open as one credential may; close some, or use another credential";
        return refuse(&mut stream, FailureCode::Busy, words.to_owned()).await;
    };
    let Ok(_connection_of_all) = exit.connections.try_acquire() else {
        let words = "too many connections are open; try again later".to_owned();
        return refuse(&mut stream, FailureCode::Busy, words).await;
    };
    let dialled = tokio::select! {
        dialled = dialer.dial(&request.host, request.port, allowance) => dialled,
        () = given_up(&mut stream) => return Ok(()),
    };
    let connection = match dialled {
        Ok(connection) => connection,
        Err(error) => return refuse(&mut stream, error.code(), error.to_string()).await,
    };
    drop(memory);
    let Some(_memory) = reserve(&mut stream, share, CONNECTION_MEMORY).await? else {
        return Ok(());
    };
    let reached = connection.peer_addr().as_ref().map(SocketAddr::to_string).unwrap_or_default();
    write_answer(&mut stream, &Answer::Ready(reached)).await?;
    let guess = request.class.is_none().then(Guess::default);
    let reader = share.readers.enter(stream.class_handle());
    tokio::select! {
        relayed = relay(stream, connection, &[], allowance, guess) => relayed.map(drop)?,
        () = reader.gave_way() => {}
    }
    Ok(())
}
