//! Opens a client's first session, as the flags that clients share say.

use std::time::Duration;

use fbdt::{ClientConfig, Config, ConnectError, Link, Priority, Session, connect};
use sumrate_capture::tun::TUN_OWN;

use super::servers::Servers;
use super::setup::Missing;
use super::{CommandError, setup};
use crate::args::{PolicyArg, ProtocolArgs, ReachArgs};
use crate::interrupt::Interrupts;
use crate::spare_memory;

/// How long a session that is nearly open may take to be told that nobody wants it any more.
const FAREWELL: Duration = Duration::from_millis(200);

/// After this long without a session the user is told that it is being tried.
const SLOW: Duration = Duration::from_secs(2);

/// What a client dials, and over which paths.
pub(super) fn configure(
    link: &str,
    reach: &ReachArgs,
    protocol: &ProtocolArgs,
    missing: Missing,
) -> Result<ClientConfig, CommandError> {
    let link = setup::link(link, protocol.insecure_plaintext)?;
    setup::check_path_names(protocol, &reach.path)?;
    let backups = &reach.backup;
    let paths = setup::with_backups(&reach.path, backups)?;
    let mut config = ClientConfig::new(link);
    // A TUN device leads to the server by a session's paths, whosever it is.
    config.excluded_addresses = vec![TUN_OWN.0.into(), TUN_OWN.1.into()];
    config.paths = setup::client_paths(&paths, &config.link, missing)?;
    if paths.is_empty() {
        let interfaces = backups.iter().map(|name| (name.clone(), Priority::BACKUP));
        config.backup_interfaces = interfaces.collect();
        config.excluded_interfaces.clone_from(&reach.not_wanted);
        config.wanted_interfaces.clone_from(backups);
    }
    config.server_name.clone_from(&reach.sni);
    config.alpn.clone_from(&reach.alpn);
    config.congestion_control = setup::congestion_control(protocol)?;
    config.coupling = protocol.coupling.transport();
    config.proto = setup::protocol(protocol)?;
    fit(&mut config.proto, spare_memory::half());
    let named = Some(config.paths.len()).filter(|_| !paths.is_empty());
    setup::idle_flags::warn(protocol, &config.proto, &config.congestion_control, named);
    config.insecure_plaintext = protocol.insecure_plaintext;
    Ok(config)
}

/// Makes windows as small as `memory`, of which received and unsent bytes may each take a half.
fn fit(proto: &mut Config, memory: u64) {
    let limits = &mut proto.limits;
    limits.session_window = limits.session_window.min(memory / 2).max(limits.stream_window);
    proto.max_stream_window = proto.max_stream_window.min(limits.session_window);
}

/// Has interfaces with settings of their own be paths, even where they are tunnels.
pub(super) fn want(config: &mut ClientConfig, policies: &[PolicyArg]) {
    if config.paths.is_empty() {
        config.wanted_interfaces.extend(policies.iter().map(|policy| policy.name.clone()));
    }
}

/// Connects until a signal comes. The server may have a session by then, which would wait for its
/// client for a minute: it is told.
pub(super) async fn open(
    config: ClientConfig,
    interrupts: &mut Interrupts,
) -> Result<Session, CommandError> {
    let slow_words = slow_words(&[&config.link], config.connect_timeout);
    opened(connect(config), &slow_words, interrupts).await
}

/// The same at the first of several servers that can be reached, with at most so much time for each.
pub(super) async fn open_first(
    servers: &Servers,
    limit: Duration,
    interrupts: &mut Interrupts,
) -> Result<Session, CommandError> {
    let configs = servers.configs();
    let links: Vec<&Link> = configs.iter().map(|config| &config.link).collect();
    let time = configs.iter().map(|config| config.connect_timeout.min(limit)).sum();
    opened(servers.open_within(limit), &slow_words(&links, time), interrupts).await
}

async fn opened(
    connecting: impl Future<Output = Result<Session, ConnectError>>,
    slow_words: &str,
    interrupts: &mut Interrupts,
) -> Result<Session, CommandError> {
    let mut connecting = std::pin::pin!(connecting);
    let slow = async {
        tokio::time::sleep(SLOW).await;
        tracing::warn!("{slow_words}");
        std::future::pending().await
    };
    let interrupt = tokio::select! {
        session = &mut connecting => return Ok(session?),
        interrupt = interrupts.next() => interrupt,
        interrupt = slow => interrupt,
    };
    if let Ok(Ok(session)) = tokio::time::timeout(FAREWELL, connecting).await {
        session.close(0, "interrupted").await;
    }
    Err(CommandError::Interrupted(interrupt))
}

/// What is said while the server cannot be reached: where it is looked for, how long, and what to
/// look at meanwhile.
fn slow_words(links: &[&Link], time: Duration) -> String {
    let servers = links.iter().flat_map(|link| link.servers());
    let servers: Vec<_> = servers.map(ToString::to_string).collect();
    format!(
        "no answer from {} yet; trying for {} s in all. Is `sumrate serve` running there, and does its \
         firewall allow this TCP port?",
        servers.join(", "),
        time.as_secs()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_waits_for_a_server_reads_which_and_what_to_look_at() {
        let link = "sumrate://127.0.0.1:7443,[::1]:7444?v=1&insecure=1#c=";
        let link = format!("{link}{}", "A".repeat(54));
        let link = setup::link(&link, true).unwrap();
        let words = slow_words(&[&link], Duration::from_secs(15));
        assert!(words.contains("from 127.0.0.1:7443, [::1]:7444 yet"), "{words}");
        assert!(words.contains("15 s in all") && words.contains("firewall"), "{words}");
        assert!(!words.contains("AAAA"), "{words}");
    }
}
