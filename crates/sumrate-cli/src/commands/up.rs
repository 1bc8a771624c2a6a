//! `sumrate up`.

use std::sync::Arc;
use std::time::Instant;

use fbdt::{ClientConfig, CongestionControl, Session};
use tokio::sync::watch;

use super::event::{UpEvent, path_summaries, session_id};
use super::keep::{Outage, keep_session};
use super::serve::optional;
use super::{CommandError, SetupError, capture, dial, setup};
use crate::args::{ProxyAddress, UpArgs};
use crate::classes::ClassRules;
use crate::interrupt::{Interrupt, Interrupts};
use crate::output;
use crate::proxy::{Proxy, ProxyKind};
use crate::session::{SessionTunnel, report};
use crate::status::{ProxyReport, STATUS_SCHEMA, StatusReport, StatusSocket};

/// Runs until a signal.
///
/// # Errors
/// [`CommandError`]
pub async fn up(mut args: UpArgs) -> Result<(), CommandError> {
    let mut interrupts = Interrupts::new()?;
    let started = Instant::now();
    let mut config = configure(&args)?;
    setup::clear_file("--ready-file", args.ready_file.as_deref())?;
    let socks = proxy(&args, ProxyKind::Socks5, &config.congestion_control)?;
    let http = proxy(&args, ProxyKind::Http, &config.congestion_control)?;
    let bound = StatusSocket::bind(args.status_socket.as_deref(), "up");
    let status = optional(args.status_socket.as_deref(), bound)?;
    let taken = capture::Capture::bind(&mut args).await?;
    if let Some(taken) = &taken {
        taken.exempt(&mut config).await?;
    }
    let session = dial::open(config.clone(), &mut interrupts).await?;
    let addresses = ProxyReport { socks: address(socks.as_ref())?, http: address(http.as_ref())? };
    if let Some(taken) = &taken {
        taken.begin()?;
    }
    announce(&args, (&addresses, taken.as_ref()), status.as_ref(), &session)?;
    let (sender, receiver) = watch::channel(Some(session));
    let tunnel = SessionTunnel::new(receiver.clone());
    let outage = Outage::default();
    let rules = Arc::new(ClassRules::new(args.class_rule.clone()));
    let answering = async {
        match &status {
            Some(socket) => {
                socket.serve(|| status_report(&receiver, &addresses, &outage, started)).await
            }
            None => std::future::pending().await,
        }
    };
    let outcome = tokio::select! {
        error = keep_session(&config, &sender, &outage, args.json) => Err(error),
        () = run_proxy(socks, tunnel.clone()) => Ok(()),
        () = run_proxy(http, tunnel.clone()) => Ok(()),
        failed = capture::run(taken.as_ref(), tunnel, &rules) => failed.map_err(CommandError::from),
        () = answering => Ok(()),
        interrupt = interrupts.next() => match interrupt {
            Interrupt::Interrupted => Err(CommandError::Interrupted(interrupt)),
            Interrupt::Terminated => Ok(()),
        },
    };
    // Programs connect directly again before the session is gone.
    drop(taken);
    let last = sender.send_replace(None);
    if let Some(session) = last {
        session.close(0, "the client stops").await;
    }
    if let Some(path) = &args.ready_file {
        let _ = std::fs::remove_file(path);
    }
    if args.json {
        output::json(&UpEvent::Stopped.into_line())?;
    }
    outcome
}

fn configure(args: &UpArgs) -> Result<ClientConfig, CommandError> {
    let config = dial::configure(&args.link, (&args.path, &args.backup), &args.protocol)?;
    let takes = args.capture.guardian.is_some();
    if !takes && (args.socks, args.http) == (ProxyAddress::Off, ProxyAddress::Off) {
        return Err(SetupError::NoProxy.into());
    }
    Ok(config)
}

fn proxy(
    args: &UpArgs,
    kind: ProxyKind,
    congestion_control: &CongestionControl,
) -> Result<Option<Proxy>, CommandError> {
    let (address, name) = match kind {
        ProxyKind::Socks5 => (args.socks.address(), "SOCKS5"),
        ProxyKind::Http => (args.http.address(), "HTTP"),
    };
    let Some(address) = address else { return Ok(None) };
    if !address.ip().is_loopback() && args.socks_auth.is_none() && !args.socks_open {
        return Err(SetupError::OpenProxy(address).into());
    }
    let listener = setup::listen(name, address, congestion_control)?;
    let auth = args.socks_auth.clone().map(Arc::new);
    let rules = ClassRules::new(args.class_rule.clone());
    let proxy = Proxy::new(kind, listener, auth, args.max_connections);
    Ok(Some(proxy.with_class_rules(rules)))
}

fn address(proxy: Option<&Proxy>) -> std::io::Result<Option<String>> {
    proxy.map(|proxy| proxy.address().map(|address| address.to_string())).transpose()
}

async fn run_proxy(proxy: Option<Proxy>, tunnel: SessionTunnel) {
    match proxy {
        Some(proxy) => proxy.run(tunnel).await,
        None => std::future::pending().await,
    }
}

fn announce(
    args: &UpArgs,
    (addresses, taken): (&ProxyReport, Option<&capture::Capture>),
    status: Option<&StatusSocket>,
    session: &Session,
) -> std::io::Result<()> {
    let line = UpEvent::Ready {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        socks: addresses.socks.clone(),
        http: addresses.http.clone(),
        status_socket: status.map(|socket| socket.path().display().to_string()),
        session: session_id(session),
        paths: path_summaries(session),
    }
    .into_line();
    if let Some(path) = &args.ready_file {
        output::write_private(path, &format!("{}\n", serde_json::to_string(&line)?))?;
    }
    if args.json {
        return output::json(&line);
    }
    let proxies = [("SOCKS5", &addresses.socks), ("HTTP CONNECT", &addresses.http)];
    for (name, address) in proxies {
        if let Some(address) = address {
            output::line(&format!("{name} proxy on {address}"))?;
        }
    }
    if let Some(taken) = taken {
        output::line(&taken.describe())?;
    }
    let names: Vec<String> = path_summaries(session).into_iter().map(|path| path.name).collect();
    output::line(&format!("paths: {}", names.join(", ")))
}

fn status_report(
    sessions: &watch::Receiver<Option<Session>>,
    proxies: &ProxyReport,
    outage: &Outage,
    started: Instant,
) -> StatusReport {
    StatusReport {
        schema: STATUS_SCHEMA.to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        role: "client".to_owned(),
        pid: std::process::id(),
        uptime_s: started.elapsed().as_secs_f64(),
        proxies: proxies.clone(),
        outage: outage.report(),
        sessions: sessions.borrow().iter().map(report).collect(),
    }
}
