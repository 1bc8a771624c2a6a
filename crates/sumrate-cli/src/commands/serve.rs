//! `sumrate serve`.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use fbdt::{Credential, Listener, ServerConfig, ServerState, Session};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::event::{ServeEvent, session_id};
use super::observe::{Observers, Snapshot};
use super::reach::{Exit, serve_session};
use super::reloading::{Reloaded, Reloads, Unchanged, split};
use super::stopping::{Stopping, drain};
use super::{CommandError, setup};
use crate::args::{Command, ServeArgs};
use crate::exit::{Allowances, Dialer, Policy};
use crate::files::FilesHost;
use crate::interrupt::{Hangups, Interrupt, Interrupts};
use crate::output;
use crate::session::report;
use crate::status::{STATUS_SCHEMA, StatusReport, StatusSocket};
use crate::systemd;

/// Most connections that the exit makes at a time.
const DIALS_MAX: usize = 512;
/// Most UDP associations at a time, over all sessions.
const ASSOCIATIONS_MAX: usize = 2048;
/// Streams that a client may have open at a time.
const STREAMS_MAX: u32 = 4096;
/// How often use is written down: what a crash forgets at most.
const USAGE_INTERVAL: Duration = Duration::from_secs(1);

type Sessions = Arc<Mutex<HashMap<String, Session>>>;

/// Flags whose new values a reload applies.
const LIVE_FLAGS: [&str; 4] = ["allow", "files", "drain", "config"];
/// How often a stopping server looks whether everything has arrived.
const LOOK: Duration = Duration::from_millis(10);

/// Runs until a signal.
///
/// # Errors
/// [`CommandError`]
pub async fn serve(args: ServeArgs) -> Result<(), CommandError> {
    let mut interrupts = Interrupts::new()?;
    let mut hangups = Hangups::new()?;
    let started = Instant::now();
    setup::clear_file("--link-file", args.link_file.as_deref())?;
    let config = configure(&args)?;
    let credential = first_credential(&config.state)?;
    let exit = Arc::new(exit(&args, &config)?);
    let status = status_socket(args.status_socket.as_deref())?;
    let observers = Observers::bind(&args.observe, status.as_ref())?;
    let mut listener = Listener::bind(config).await?;
    announce(&args, &listener, &credential, status.as_ref(), &observers)?;
    let (sessions, reloads) = (Sessions::default(), Arc::new(Reloads::default()));
    let snapshot: Snapshot = {
        let (sessions, reloads) = (Arc::clone(&sessions), Arc::clone(&reloads));
        let exit = Arc::clone(&exit);
        Arc::new(move || status_report(&sessions, &exit, &reloads, started))
    };
    let answering = async {
        match &status {
            Some(socket) => socket.serve(|| async { snapshot() }).await,
            None => std::future::pending().await,
        }
    };
    let live = Mutex::new(args.clone());
    let reloading = async {
        loop {
            hangups.next().await;
            reloads.run(async { reload(&live, &exit) }).await;
        }
    };
    let mut running = Box::pin(async {
        tokio::select! {
            error = accept(&mut listener, &sessions, &exit, args.json) => Err(error),
            () = answering => Ok(()),
            () = reloading => Ok(()),
            () = observers.run(&snapshot, &snapshot) => Ok(()),
            () = keep_usage(&exit) => Ok(()),
            () = finished(&exit, &sessions) => Ok(()),
        }
    });
    systemd::ready();
    let outcome = tokio::select! {
        outcome = &mut running => outcome,
        interrupt = interrupts.next() => match interrupt {
            Interrupt::Interrupted => Err(CommandError::Interrupted(interrupt)),
            Interrupt::Terminated => {
                wind_down(&mut running, &live, &exit, &mut interrupts).await;
                Ok(())
            }
        },
    };
    drop(running);
    // Those that were opened a moment ago must be told too.
    while let Ok(Ok(session)) = tokio::time::timeout(Duration::ZERO, listener.accept()).await {
        lock(&sessions).insert(session_id(&session), session);
    }
    close_all(&sessions).await;
    save_usage(&exit);
    if args.json {
        output::json(&ServeEvent::Stopped.into_line())?;
    }
    outcome
}

/// Takes nothing new on, and lets streams finish for as long as they may.
async fn wind_down<T>(
    running: impl Future<Output = T>,
    live: &Mutex<ServeArgs>,
    exit: &Exit,
    interrupts: &mut Interrupts,
) {
    let limit = live.lock().unwrap_or_else(PoisonError::into_inner).daemon.drain;
    exit.stop(limit);
    match drain(running, limit, interrupts).await {
        cut if cut.is_cut() => tracing::warn!("{cut}"),
        finished => tracing::info!("{finished}"),
    }
}

/// Waits until the server stops, every stream is served, and the clients have what it sent them.
async fn finished(exit: &Exit, sessions: &Sessions) {
    exit.idle().await;
    let busy = |session: &Session| !session.stats().streams.is_empty();
    while lock(sessions).values().any(busy) {
        tokio::time::sleep(LOOK).await;
    }
}

/// Reads the configuration again and applies what can be applied.
fn reload(live: &Mutex<ServeArgs>, exit: &Exit) -> Result<Reloaded, Unchanged> {
    let mut args = live.lock().unwrap_or_else(PoisonError::into_inner);
    let reread = args.daemon.source.reread().map_err(Unchanged::Configuration)?;
    let Command::Serve(wanted) = reread.cli.command else {
        return Err(Unchanged::Configuration("the configuration is of another command".to_owned()));
    };
    let (applied, _) = split(reread.changes, &LIVE_FLAGS);
    let (_, needs_restart) = split(reread.since_start, &LIVE_FLAGS);
    exit.files
        .replace(wanted.files.as_deref())
        .map_err(|error| Unchanged::Configuration(error.to_string()))?;
    exit.dialer.policy().replace_rules(wanted.allow.clone());
    args.daemon.source.accept(reread.accepted);
    args.daemon.drain = wanted.daemon.drain;
    Ok(Reloaded { applied, needs_restart })
}

fn configure(args: &ServeArgs) -> Result<ServerConfig, CommandError> {
    let mut proto = setup::protocol(&args.protocol)?;
    proto.limits.max_streams = STREAMS_MAX;
    let congestion_control = setup::congestion_control(&args.protocol)?;
    setup::idle_flags::warn(&args.protocol, &proto, &congestion_control, None);
    let state = ServerState::open(setup::state_directory(args.state.as_deref())?)?;
    let mut config = ServerConfig::new(state, args.listen.clone());
    config.advertise.clone_from(&args.advertise);
    config.congestion_control = congestion_control;
    config.coupling = args.protocol.coupling.transport();
    config.proto = proto;
    config.insecure_plaintext = args.protocol.insecure_plaintext;
    Ok(config)
}

fn exit(args: &ServeArgs, config: &ServerConfig) -> Result<Exit, CommandError> {
    let advertised: Vec<IpAddr> = args.advertise.iter().map(|address| address.ip()).collect();
    let policy = Policy::new(args.allow.clone(), advertised);
    Ok(Exit {
        dialer: Dialer::new(policy, config.congestion_control.algorithm()),
        dials: Semaphore::new(DIALS_MAX),
        associations: Semaphore::new(ASSOCIATIONS_MAX),
        allowances: Allowances::new(config.state.clone()),
        sending: setup::sending(&config.congestion_control, &config.proto),
        stop: CancellationToken::new(),
        stopping: Stopping::default(),
        work: TaskTracker::new(),
        flows: Arc::default(),
        files: FilesHost::new(args.files.as_deref())?,
    })
}

/// The credential that the printed link carries: the oldest one without limits, else the oldest,
/// made if there is none.
fn first_credential(state: &ServerState) -> Result<Credential, CommandError> {
    let credentials = state.list()?;
    let unlimited = credentials.iter().find(|info| info.limits == Default::default());
    match unlimited.or(credentials.first()) {
        Some(oldest) => Ok(state.credential(oldest.id)?),
        None => Ok(state.new_credential("first", Default::default())?),
    }
}

/// The status socket; only one that was asked for must work.
pub(super) fn status_socket(path: Option<&Path>) -> Result<Option<StatusSocket>, CommandError> {
    let command = if path.is_some() { "" } else { "serve" };
    optional(path, StatusSocket::bind(path, command))
}

pub(super) fn optional(
    asked: Option<&Path>,
    bound: Result<StatusSocket, crate::status::SocketError>,
) -> Result<Option<StatusSocket>, CommandError> {
    match bound {
        Ok(socket) => Ok(Some(socket)),
        Err(error) if asked.is_some() => Err(error.into()),
        Err(error) => {
            tracing::warn!(%error, "`sumrate status` will not find this process");
            Ok(None)
        }
    }
}

fn announce(
    args: &ServeArgs,
    listener: &Listener,
    credential: &Credential,
    status: Option<&StatusSocket>,
    observers: &Observers,
) -> io::Result<()> {
    let link = listener.link(credential).to_string_with_secret();
    if let Some(path) = &args.link_file {
        output::write_private(path, &format!("{link}\n"))?;
    }
    if args.protocol.insecure_plaintext {
        tracing::warn!("--insecure-plaintext: everybody on the way can read and change the data");
    }
    for warning in unreached(listener.local_addrs(), &args.advertise) {
        tracing::warn!("{warning}");
    }
    let listen = listener.local_addrs().iter().map(ToString::to_string).collect();
    tracing::info!(?listen, "accepting clients");
    if !args.json {
        output::line(&link)?;
        return observers.announce();
    }
    let event = ServeEvent::Listening {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        link: link.into(),
        listen,
        status_socket: status.map(|socket| socket.path().display().to_string()),
        metrics: observers.metrics_url(),
        web: observers.web_url(),
    };
    output::json(&event.into_line())
}

/// What is advertised and nobody listens on, as it is of the other address family: who dials it comes
/// here only if something on the way translates. Sockets of IPv6 take no IPv4.
fn unreached(listen: &[SocketAddr], advertise: &[SocketAddr]) -> Vec<String> {
    let of_no_listener = advertise
        .iter()
        .filter(|told| listen.iter().all(|address| address.is_ipv4() != told.is_ipv4()));
    let listens: Vec<String> = listen.iter().map(ToString::to_string).collect();
    let listens = listens.join(", ");
    let warning = |told: &SocketAddr| {
        let (its, other, every) = match told.is_ipv4() {
            true => ("IPv4", "IPv6", "0.0.0.0"),
            false => ("IPv6", "IPv4", "[::]"),
        };
        let port = told.port();
        format!(
            "--advertise {told} is {its}, and this listens on {other} only ({listens}): clients that dial it come here only if something on the way translates; add --listen {every}:{port}, or advertise an address of {other}"
        )
    };
    of_no_listener.map(warning).collect()
}

async fn accept(
    listener: &mut Listener,
    sessions: &Sessions,
    exit: &Arc<Exit>,
    json: bool,
) -> CommandError {
    let mut tasks = JoinSet::new();
    loop {
        let session = match listener.accept().await {
            Ok(session) => session,
            Err(error) => return error.into(),
        };
        while tasks.try_join_next().is_some() {}
        if exit.is_stopping() {
            tasks.spawn(async move { session.close(0, "the server stops").await });
            continue;
        }
        lock(sessions).insert(session_id(&session), session.clone());
        tasks.spawn(follow(session, Arc::clone(sessions), Arc::clone(exit), json));
    }
}

/// Writes down what credentials have used, so that a quota outlives this process.
async fn keep_usage(exit: &Exit) {
    loop {
        tokio::time::sleep(USAGE_INTERVAL).await;
        save_usage(exit);
    }
}

fn save_usage(exit: &Exit) {
    if let Err(error) = exit.allowances.save() {
        tracing::warn!(%error, "what a credential has used is not written down");
    }
}

/// One session from its start to its end.
async fn follow(session: Session, sessions: Sessions, exit: Arc<Exit>, json: bool) {
    let id = session_id(&session);
    let credential = session.credential().map(|credential| credential.id.to_string());
    tracing::info!(session = id, credential, "session opened");
    print(json, ServeEvent::SessionOpened { session: id.clone(), credential });
    serve_session(session.clone(), exit).await;
    let reason = session.closed().await.to_string();
    lock(&sessions).remove(&id);
    tracing::info!(session = id, reason, "session closed");
    print(json, ServeEvent::SessionClosed { session: id, reason });
}

fn print(json: bool, event: ServeEvent) {
    if json && let Err(error) = output::json(&event.into_line()) {
        tracing::warn!(%error, "cannot print an event");
    }
}

fn lock(sessions: &Sessions) -> std::sync::MutexGuard<'_, HashMap<String, Session>> {
    sessions.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn close_all(sessions: &Sessions) {
    let open: Vec<Session> = lock(sessions).values().cloned().collect();
    let mut closing = JoinSet::new();
    for session in open {
        closing.spawn(async move { session.close(0, "the server stops").await });
    }
    closing.join_all().await;
}

fn status_report(
    sessions: &Sessions,
    exit: &Exit,
    reloads: &Reloads,
    started: Instant,
) -> StatusReport {
    let sessions: Vec<_> = lock(sessions).values().map(report).collect();
    StatusReport {
        schema: STATUS_SCHEMA.to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        role: "server".to_owned(),
        pid: std::process::id(),
        uptime_s: started.elapsed().as_secs_f64(),
        udp: exit.flows.report(),
        stopping: exit.stopping.report(&sessions),
        reload: reloads.report(),
        sessions,
        ..StatusReport::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn addresses(texts: &[&str]) -> Vec<SocketAddr> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    fn warnings(listen: &[&str], advertise: &[&str]) -> Vec<String> {
        unreached(&addresses(listen), &addresses(advertise))
    }

    #[test]
    fn what_is_advertised_of_a_family_that_nobody_listens_on_is_named() {
        let (four, six) = ("0.0.0.0:7443", "[::]:7443");
        let (told4, told6) = ("203.0.113.9:443", "[2001:db8::1]:443");
        let fine: [(&[&str], &[&str]); 5] = [
            (&[four], &[]),
            (&[four], &[told4]),
            (&[six], &[told6]),
            (&[four, six], &[told4, told6]),
            (&[four, six], &[told6]),
        ];
        for (listen, advertise) in fine {
            assert!(warnings(listen, advertise).is_empty(), "{listen:?} {advertise:?}");
        }
        let warned = warnings(&[four, "192.0.2.1:1"], &[told4, told6]);
        assert_eq!(warned.len(), 1, "{warned:?}");
        for words in [
            "--advertise [2001:db8::1]:443 is IPv6",
            "listens on IPv4 only (0.0.0.0:7443, 192.0.2.1:1)",
            "--listen [::]:443",
        ] {
            assert!(warned[0].contains(words), "{warned:?}");
        }
        let warned = warnings(&[six], &[told4, told6]);
        assert_eq!(warned.len(), 1, "{warned:?}");
        assert!(warned[0].starts_with("--advertise 203.0.113.9:443 is IPv4, and"), "{warned:?}");
        assert!(warned[0].contains("--listen 0.0.0.0:443, or"), "{warned:?}");
    }
}
