//! Where programs and people reach a client, and what it says at the start.

use std::net::SocketAddr;
use std::sync::Arc;

use fbdt::{CongestionControl, Session};
use tokio_util::sync::CancellationToken;

use super::event::{UpEvent, path_summaries, session_id};
use super::observe::Observers;
use super::serve::optional;
use super::{CommandError, SetupError, capture, setup};
use crate::args::UpArgs;
use crate::classes::ClassRules;
use crate::control::ControlSocket;
use crate::history::HistorySocket;
use crate::output;
use crate::proxy::{Proxy, ProxyKind};
use crate::session::report;
use crate::status::{LeftOutReport, PathReport, ProxyReport, StatusSocket, list, rtt_words};

/// Where programs and people reach the client.
pub(super) struct Doors {
    pub(super) socks: Option<Proxy>,
    pub(super) http: Option<Proxy>,
    pub(super) addresses: ProxyReport,
    pub(super) status: Option<StatusSocket>,
    pub(super) control: Option<ControlSocket>,
    pub(super) history: Option<HistorySocket>,
    pub(super) observers: Observers,
}

impl Doors {
    /// Listens everywhere; the proxies take nobody any more once `stop` is cancelled.
    pub(super) fn bind(
        args: &UpArgs,
        congestion_control: &CongestionControl,
        stop: &CancellationToken,
    ) -> Result<Self, CommandError> {
        let socks = proxy(args, ProxyKind::Socks5, congestion_control, stop)?;
        let http = proxy(args, ProxyKind::Http, congestion_control, stop)?;
        let addresses =
            ProxyReport { socks: address(socks.as_ref())?, http: address(http.as_ref())? };
        let bound = StatusSocket::bind(args.status_socket.as_deref(), "up");
        let status = optional(args.status_socket.as_deref(), bound)?;
        let control =
            status.as_ref().map(|socket| ControlSocket::bind(socket.path())).transpose()?;
        let history =
            status.as_ref().map(|socket| HistorySocket::bind(socket.path())).transpose()?;
        let observers = Observers::bind(&args.observe, status.as_ref())?;
        Ok(Self { socks, http, addresses, status, control, history, observers })
    }

    /// Says where, in the ready file and on standard output.
    pub(super) fn announce(
        &self,
        args: &UpArgs,
        taken: Option<&capture::Capture>,
        session: Option<&Session>,
        left_out: &[LeftOutReport],
    ) -> std::io::Result<()> {
        let paths = session.map(path_summaries).unwrap_or_default();
        let line = UpEvent::Ready {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            socks: self.addresses.socks.clone(),
            http: self.addresses.http.clone(),
            status_socket: self.status.as_ref().map(|socket| socket.path().display().to_string()),
            metrics: self.observers.metrics_url(),
            web: self.observers.web_url(),
            session: session.map(session_id),
            paths,
        }
        .into_line();
        if let Some(path) = &args.ready_file {
            output::write_private(path, &format!("{}\n", serde_json::to_string(&line)?))?;
        }
        if args.json {
            return output::json(&line);
        }
        output::line(&connected(session, left_out))?;
        if let Some(socks) = &self.addresses.socks {
            output::line(&format!(
                "SOCKS5 proxy on {socks}, for example: curl -x socks5h://{socks} https://example.org/"
            ))?;
        }
        if let Some(http) = &self.addresses.http {
            output::line(&format!("HTTP proxy on {http}"))?;
        }
        if let Some(taken) = taken {
            output::line(&taken.describe())?;
        }
        self.observers.announce()?;
        output::line("watch: sumrate status, or sumrate top; stop: Ctrl-C")
    }
}

/// The server and the paths to it, with addresses and RTT.
fn connected(session: Option<&Session>, left_out: &[LeftOutReport]) -> String {
    let Some(session) = session else {
        return "not connected yet: `sumrate status` says why".to_owned();
    };
    let paths = report(session).paths;
    let address = |text: &str| text.parse::<SocketAddr>().ok();
    let server = paths.iter().find_map(|path| path.remote.clone()).unwrap_or_default();
    let words = |path: &PathReport| {
        let mut facts = Vec::new();
        facts.extend(path.local.as_deref().and_then(address).map(|local| local.ip().to_string()));
        facts.extend((path.rtt_ms > 0.0).then(|| format!("RTT {}", rtt_words(path.rtt_ms))));
        facts.extend((path.health == "dead").then(|| "not connected yet".to_owned()));
        facts.extend((path.priority != "primary").then(|| path.priority.clone()));
        format!("{} ({})", path.name, facts.join(", "))
    };
    let paths: Vec<String> = paths.iter().map(words).collect();
    let unused: String =
        LeftOutReport::words_of_all(left_out).iter().map(|words| format!("; {words}")).collect();
    format!("connected to {server}, paths: {}{unused}", list(&paths))
}

fn proxy(
    args: &UpArgs,
    kind: ProxyKind,
    congestion_control: &CongestionControl,
    stop: &CancellationToken,
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
    Ok(Some(proxy.with_class_rules(rules).until(stop.clone())))
}

fn address(proxy: Option<&Proxy>) -> std::io::Result<Option<String>> {
    proxy.map(|proxy| proxy.address().map(|address| address.to_string())).transpose()
}
