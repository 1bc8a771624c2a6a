//! Opens a client's first session, as the flags that clients share say.

use std::time::Duration;

use fbdt::{ClientConfig, Config, Priority, Session, connect};
use sumrate_capture::tun::TUN_OWN;

use super::setup::Missing;
use super::{CommandError, setup};
use crate::args::{PathArg, ProtocolArgs};
use crate::interrupt::Interrupts;
use crate::spare_memory;

/// How long a session that is nearly open may take to be told that nobody wants it any more.
const FAREWELL: Duration = Duration::from_millis(200);

/// After this long without a session the user is told that it is being tried.
const SLOW: Duration = Duration::from_secs(2);

/// What a client dials: `paths`, and which of them stand by.
pub(super) fn configure(
    link: &str,
    (paths, backups): (&[PathArg], &[String]),
    protocol: &ProtocolArgs,
    missing: Missing,
) -> Result<ClientConfig, CommandError> {
    let link = setup::link(link, protocol.insecure_plaintext)?;
    setup::check_path_names(protocol, paths)?;
    let paths = setup::with_backups(paths, backups)?;
    let mut config = ClientConfig::new(link);
    // A TUN device leads to the server by a session's paths, whosever it is.
    config.excluded_addresses = vec![TUN_OWN.0.into(), TUN_OWN.1.into()];
    config.paths = setup::client_paths(&paths, &config.link, missing)?;
    if paths.is_empty() {
        let interfaces = backups.iter().map(|name| (name.clone(), Priority::BACKUP));
        config.backup_interfaces = interfaces.collect();
    }
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

/// Connects until a signal comes. The server may have a session by then, which would wait for its
/// client for a minute: it is told.
pub(super) async fn open(
    config: ClientConfig,
    interrupts: &mut Interrupts,
) -> Result<Session, CommandError> {
    let slow_words = slow_words(&config);
    let mut connecting = std::pin::pin!(connect(config));
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
fn slow_words(config: &ClientConfig) -> String {
    let servers: Vec<_> = config.link.servers().iter().map(ToString::to_string).collect();
    format!(
        "no answer from {} yet; trying for {} s in all. Is `sumrate serve` running there, and does its \
         firewall allow this TCP port?",
        servers.join(", "),
        config.connect_timeout.as_secs()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_waits_for_a_server_reads_which_and_what_to_look_at() {
        let link = "sumrate://127.0.0.1:7443,[::1]:7444?v=1&insecure=1#c=";
        let link = format!("{link}{}", "A".repeat(54));
        let config = ClientConfig::new(setup::link(&link, true).unwrap());
        let words = slow_words(&config);
        assert!(words.contains("from 127.0.0.1:7443, [::1]:7444 yet"), "{words}");
        assert!(words.contains("15 s in all") && words.contains("firewall"), "{words}");
        assert!(!words.contains("AAAA"), "{words}");
    }
}
