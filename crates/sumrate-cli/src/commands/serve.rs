//! `sumrate serve`.

use std::collections::HashMap;
use std::io::{self, IsTerminal};
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use fbdt::{AcceptLimits, Credential, Listener, ServerAddress, ServerConfig, ServerState, Session};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::event::{ServeEvent, session_id};
use super::observe::{Observers, Snapshot, Sources};
use super::reach::{Exit, serve_session};
use super::reloading::{Reloaded, Reloads, Unchanged, split};
use super::stopping::{Stopping, drain};
use super::up::answer_history;
use super::{CommandError, setup};
use crate::args::{Command, LEAST_MEMORY, ServeArgs};
use crate::crowd::{Bounds, Crowd};
use crate::descriptors::Descriptors;
use crate::exit::{Allowances, Dialer, Policy, Ports, is_private};
use crate::files::FilesHost;
use crate::history::{History, HistorySocket, Look, SessionLook};
use crate::interrupt::{Hangups, Interrupt, Interrupts};
use crate::output::{self, counted};
use crate::session::report;
use crate::status::{STATUS_SCHEMA, StatusReport, StatusSocket, annotate_headline};
use crate::{interfaces, spare_memory, systemd};

/// Streams that a client may have open at a time.
const STREAMS_MAX: u32 = 4096;
/// How often use is written down: what a crash forgets at most.
const USAGE_INTERVAL: Duration = Duration::from_secs(1);
/// How often the addresses behind advertised names are looked up.
const ADVERTISED_INTERVAL: Duration = Duration::from_secs(300);

type Sessions = Arc<Mutex<HashMap<String, Session>>>;

/// Flags whose new values a reload applies.
const LIVE_FLAGS: [&str; 6] = ["allow", "allow-port", "deny-port", "files", "drain", "config"];
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
    let _claim = config.state.claim()?;
    let credential = first_credential(&config.state)?;
    let credentials = config.state.list()?.len();
    let exit = Arc::new(exit(&args, &config)?);
    let status = status_socket(args.status_socket.as_deref())?;
    let history_socket =
        status.as_ref().map(|socket| HistorySocket::bind(socket.path())).transpose()?;
    let observers = Observers::bind(&args.observe, status.as_ref())?;
    let listener = Listener::bind(config).await?;
    announce(&args, &listener, (&credential, credentials), status.as_ref(), &observers)?;
    let (sessions, reloads) = (Sessions::default(), Arc::new(Reloads::default()));
    let history = Arc::new(History::new(started));
    let listen = listener.local_addrs().iter().map(ToString::to_string).collect();
    let reported = Reported {
        started,
        listen,
        sessions: Arc::clone(&sessions),
        exit: Arc::clone(&exit),
        reloads: Arc::clone(&reloads),
        history: Arc::clone(&history),
    };
    let snapshot: Snapshot = Arc::new(move || reported.report());
    let sources = Sources {
        snapshot: Arc::clone(&snapshot),
        watched: Arc::clone(&snapshot),
        history: Arc::clone(&history),
        change: None,
    };
    let live = Mutex::new(args.clone());
    let running = Box::pin(async {
        tokio::select! {
            error = accept(&listener, &sessions, &exit, args.json) => Err(error),
            () = answer(status.as_ref(), &snapshot) => Ok(()),
            () = reload_at(&mut hangups, &reloads, &live, &exit) => Ok(()),
            () = observers.run(&sources) => Ok(()),
            () = keep_usage(&exit) => Ok(()),
            () = keep_advertised(&args.advertise, &exit) => Ok(()),
            () = history.keep(|| look(&sessions)) => Ok(()),
            () = answer_history(history_socket.as_ref(), &history) => Ok(()),
            () = finished(&exit, &sessions) => Ok(()),
        }
    });
    systemd::ready();
    let outcome = until_stopped(running, &live, &exit, &mut interrupts).await;
    close_all(&listener, &sessions).await;
    save_usage(&exit);
    if args.json {
        output::json(&ServeEvent::Stopped.into_line())?;
    }
    outcome
}

/// Answers `sumrate status`.
async fn answer(status: Option<&StatusSocket>, snapshot: &Snapshot) {
    let Some(socket) = status else { return std::future::pending().await };
    socket.serve(|| async { snapshot() }).await;
}

/// Reads the configuration again at each SIGHUP.
async fn reload_at(hangups: &mut Hangups, reloads: &Reloads, live: &Mutex<ServeArgs>, exit: &Exit) {
    loop {
        hangups.next().await;
        reloads.run(async { reload(live, exit) }).await;
    }
}

/// Runs until it fails or is told to stop, and then until what there is has finished.
async fn until_stopped(
    mut running: impl Future<Output = Result<(), CommandError>> + Unpin,
    live: &Mutex<ServeArgs>,
    exit: &Exit,
    interrupts: &mut Interrupts,
) -> Result<(), CommandError> {
    tokio::select! {
        outcome = &mut running => outcome,
        interrupt = interrupts.next() => match interrupt {
            Interrupt::Interrupted => Err(CommandError::Interrupted(interrupt)),
            Interrupt::Terminated => {
                wind_down(running, live, exit, interrupts).await;
                Ok(())
            }
        },
    }
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
    exit.dialer.policy().replace_rules(wanted.allow.clone(), ports(&wanted));
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
    let memory = args.memory.unwrap_or_else(spare_memory::half).max(LEAST_MEMORY);
    limit(&mut config.limits, memory, Descriptors::of_process());
    // One session's receive window is a part of what its credential may hold: readers that stop are
    // waited for, and not closed.
    proto.limits.session_window = proto.limits.session_window.min(memory / 4);
    proto.max_stream_window = proto.max_stream_window.min(proto.limits.session_window);
    config.advertise.clone_from(&args.advertise);
    config.proxies.clone_from(&args.proxy_protocol);
    config.alpn.clone_from(&args.alpn);
    config.congestion_control = congestion_control;
    config.coupling = args.protocol.coupling.transport();
    config.proto = proto;
    config.insecure_plaintext = args.protocol.insecure_plaintext;
    Ok(config)
}

/// Bounds what clients together may use: half of it one credential.
fn limit(limits: &mut AcceptLimits, memory: u64, descriptors: Descriptors) {
    limits.max_memory = memory;
    limits.max_memory_per_credential = memory / 2;
    let sessions = descriptors.sessions(limits.max_paths);
    limits.max_sessions = limits.max_sessions.min(sessions);
    limits.max_sessions_per_credential =
        limits.max_sessions_per_credential.min(sessions.div_ceil(2));
}

fn ports(args: &ServeArgs) -> Ports {
    Ports::new(&args.deny_port, &args.allow_port)
}

fn exit(args: &ServeArgs, config: &ServerConfig) -> Result<Exit, CommandError> {
    let advertised: Vec<IpAddr> = args.advertise.iter().filter_map(ServerAddress::ip).collect();
    let policy = Policy::new(args.allow.clone(), advertised);
    policy.replace_rules(args.allow.clone(), ports(args));
    let descriptors = Descriptors::of_process();
    let connections = descriptors.connections_of_credential();
    Ok(Exit {
        dialer: Dialer::new(policy, config.congestion_control.algorithm()),
        associations: Crowd::new(Bounds::of(descriptors.associations())),
        connections: Semaphore::new(descriptors.connections()),
        allowances: Allowances::new(config.state.clone(), connections),
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
            tracing::warn!(%error, "`sumrate status` cannot find this process");
            Ok(None)
        }
    }
}

fn announce(
    args: &ServeArgs,
    listener: &Listener,
    (credential, credentials): (&Credential, usize),
    status: Option<&StatusSocket>,
    observers: &Observers,
) -> io::Result<()> {
    let link = listener.link(credential).to_string_with_secret();
    if let Some(path) = &args.link_file {
        output::write_private(path, &format!("{link}\n"))?;
    }
    if args.protocol.insecure_plaintext {
        tracing::warn!("--insecure-plaintext: anyone on the network can read and change the data");
    }
    for warning in unreached(listener.local_addrs(), &args.advertise) {
        tracing::warn!("{warning}");
    }
    let own: Vec<IpAddr> = interfaces::addresses()?.into_iter().map(|(_, own)| own).collect();
    if let Some(warning) = hidden(listener.local_addrs(), &own, &args.advertise) {
        tracing::warn!("{warning}");
    }
    let listen: Vec<String> = listener.local_addrs().iter().map(ToString::to_string).collect();
    tracing::info!(?listen, "accepting clients");
    if !args.json {
        output::line(&welcome(&link, &listen, credentials, io::stdout().is_terminal()))?;
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

/// The first words of a server. A program that reads them finds the link alone on the first line; a
/// person finds the command to type.
fn welcome(link: &str, listen: &[String], credentials: usize, is_terminal: bool) -> String {
    let credentials = counted(credentials as u64, "credential", "credentials");
    let listening = format!("listening on {} for {credentials}", listen.join(", "));
    let stop = "watch: sumrate status; stop: Ctrl-C";
    if !is_terminal {
        return format!(
            "{link}\n{listening}\non the other machine: sumrate up 'LINK', with the line above as \
             LINK; it is a password\n{stop}"
        );
    }
    format!(
        "{listening}\non the other machine, run (the link is a password: keep it secret):\n\n  \
         sumrate up '{link}'\n\n{stop}"
    )
}

/// What is advertised and nobody listens on, as it is of the other address family: who dials it comes
/// here only if something on the way translates. Sockets of IPv6 take no IPv4.
fn unreached(listen: &[SocketAddr], advertise: &[ServerAddress]) -> Vec<String> {
    let of_no_listener = advertise
        .iter()
        .filter_map(|told| Some(SocketAddr::new(told.ip()?, told.port)))
        .filter(|told| listen.iter().all(|address| address.is_ipv4() != told.is_ipv4()));
    let listens: Vec<String> = listen.iter().map(ToString::to_string).collect();
    let listens = listens.join(", ");
    let warning = |told: SocketAddr| {
        let (its, other, every) = match told.is_ipv4() {
            true => ("IPv4", "IPv6", "0.0.0.0"),
            false => ("IPv6", "IPv4", "[::]"),
        };
        let port = told.port();
        format!(
            "--advertise {told} is {its}, but this server listens on {other} only ({listens}): clients cannot connect to it directly; add --listen {every}:{port}, or advertise an {other} address"
        )
    };
    of_no_listener.map(warning).collect()
}

/// That the server does not know the address by which others reach it: clients could then reach the
/// server's own network by it. Only loopback is listened on for nobody else.
fn hidden(listen: &[SocketAddr], own: &[IpAddr], advertise: &[ServerAddress]) -> Option<String> {
    let own: Vec<IpAddr> =
        own.iter().map(IpAddr::to_canonical).filter(|own| !is_of_link(*own)).collect();
    let is_local = listen.iter().all(|address| address.ip().is_loopback());
    if is_local || !advertise.is_empty() || own.iter().any(|own| !is_private(*own)) {
        return None;
    }
    let own: Vec<String> = own.iter().map(ToString::to_string).collect();
    Some(format!(
        "this machine has private addresses only ({}) and no --advertise: if a public address is forwarded here (NAT), the link lacks it, and clients could reach this machine's own services through it; give --advertise PUBLIC-ADDRESS:PORT",
        own.join(", ")
    ))
}

/// Whether only this machine or this link knows the address.
fn is_of_link(address: IpAddr) -> bool {
    address.is_loopback()
        || match address {
            IpAddr::V4(four) => four.is_link_local(),
            IpAddr::V6(six) => six.is_unicast_link_local(),
        }
}

async fn accept(
    listener: &Listener,
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

/// Keeps the addresses behind advertised names closed to clients, as those of this machine are.
async fn keep_advertised(advertise: &[ServerAddress], exit: &Exit) {
    if advertise.iter().all(|server| server.ip().is_some()) {
        return std::future::pending().await;
    }
    loop {
        let mut addresses: Vec<IpAddr> = Vec::new();
        for server in advertise {
            match server.ip() {
                Some(ip) => addresses.push(ip),
                None => match tokio::net::lookup_host((server.host.as_str(), server.port)).await {
                    Ok(found) => addresses.extend(found.map(|address| address.ip())),
                    Err(error) => {
                        tracing::warn!(
                            "--advertise {server}: the name has no address yet: {error}"
                        );
                    }
                },
            }
        }
        exit.dialer.policy().replace_advertised(addresses);
        tokio::time::sleep(ADVERTISED_INTERVAL).await;
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
        tracing::warn!(%error, "cannot save what credentials have used; retrying every second");
    }
}

/// One session from its start to its end.
async fn follow(session: Session, sessions: Sessions, exit: Arc<Exit>, json: bool) {
    let id = session_id(&session);
    let credential = session.credential().map(|credential| credential.id.to_string());
    tracing::info!(session = id, credential, "a client connected");
    print(json, ServeEvent::SessionOpened { session: id.clone(), credential });
    serve_session(session.clone(), exit).await;
    let reason = session.closed().await.to_string();
    lock(&sessions).remove(&id);
    tracing::info!(session = id, reason, "a client disconnected");
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

/// Tells all clients that the server stops.
async fn close_all(listener: &Listener, sessions: &Sessions) {
    // Those that were opened a moment ago must be told too.
    while let Ok(Ok(session)) = tokio::time::timeout(Duration::ZERO, listener.accept()).await {
        lock(sessions).insert(session_id(&session), session);
    }
    let open: Vec<Session> = lock(sessions).values().cloned().collect();
    let mut closing = JoinSet::new();
    for session in open {
        closing.spawn(async move { session.close(0, "the server stops").await });
    }
    closing.join_all().await;
}

/// The counters for one sample of the history.
fn look(sessions: &Sessions) -> Look {
    let session = |(id, session): (&String, &Session)| {
        let name = session.credential().map(|credential| credential.name.clone());
        let client = name.unwrap_or_else(|| id.chars().take(8).collect());
        SessionLook::new(session, Some(client), |_| None)
    };
    Look { sessions: lock(sessions).iter().map(session).collect(), outage: None }
}

/// What a server says of itself.
struct Reported {
    started: Instant,
    listen: Vec<String>,
    sessions: Sessions,
    exit: Arc<Exit>,
    reloads: Arc<Reloads>,
    history: Arc<History>,
}

impl Reported {
    fn report(&self) -> StatusReport {
        let sessions: Vec<_> = lock(&self.sessions).values().map(report).collect();
        let mut report = StatusReport {
            schema: STATUS_SCHEMA.to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            role: "server".to_owned(),
            pid: std::process::id(),
            uptime_s: self.started.elapsed().as_secs_f64(),
            listen: self.listen.clone(),
            udp: self.exit.flows.report(),
            attempts: Some(self.exit.dialer.attempts()),
            refusals: self.exit.dialer.refusals().report(),
            stopping: self.exit.stopping.report(&sessions),
            reload: self.reloads.report(),
            sessions,
            ..StatusReport::default()
        };
        self.history.annotate(&mut report);
        annotate_headline(&mut report);
        report
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn addresses(texts: &[&str]) -> Vec<SocketAddr> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    fn names(texts: &[&str]) -> Vec<ServerAddress> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    fn warnings(listen: &[&str], advertise: &[&str]) -> Vec<String> {
        unreached(&addresses(listen), &names(advertise))
    }

    #[test]
    fn a_server_with_private_addresses_asks_for_its_public_one() {
        let warning = |listen: &str, own: &[&str], advertise: &[&str]| {
            let own: Vec<IpAddr> = own.iter().map(|own| own.parse().unwrap()).collect();
            hidden(&addresses(&[listen]), &own, &names(advertise))
        };
        let private = ["127.0.0.1", "::1", "10.0.0.5", "fe80::7", "fd00::5"];
        let words = warning("0.0.0.0:7443", &private, &[]).unwrap();
        assert!(words.contains("(10.0.0.5, fd00::5)") && words.contains("--advertise"), "{words}");
        assert_eq!(warning("0.0.0.0:7443", &private, &["8.8.8.8:7443"]), None);
        assert_eq!(warning("0.0.0.0:7443", &private, &["server.example:7443"]), None);
        assert_eq!(warning("127.0.0.1:7443", &private, &[]), None);
        for public in ["8.8.8.8", "2a00::5"] {
            let own = [&private[..], &[public]].concat();
            assert_eq!(warning("0.0.0.0:7443", &own, &[]), None, "{public}");
        }
    }

    #[test]
    fn memory_and_sessions_follow_what_the_machine_has() {
        let mut limits = AcceptLimits::default();
        limit(&mut limits, 1 << 30, Descriptors::of_process());
        assert_eq!((limits.max_memory, limits.max_memory_per_credential), (1 << 30, 1 << 29));
        assert!(2 * limits.max_sessions_per_credential <= limits.max_sessions + 1);
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
            (&[four, six], &[told6, "server.example:443"]),
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
        assert!(warned[0].starts_with("--advertise 203.0.113.9:443 is IPv4, but"), "{warned:?}");
        assert!(warned[0].contains("--listen 0.0.0.0:443, or"), "{warned:?}");
    }
}
