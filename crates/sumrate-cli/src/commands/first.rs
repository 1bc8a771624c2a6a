//! The first session of a client.

use std::time::Duration;

use fbdt::{ConnectError, Session};

use super::capture::Capture;
use super::outage::Outage;
use super::servers::Servers;
use super::{CommandError, dial};
use crate::interrupt::Interrupts;

/// How long captured connections wait for the first session before they are refused.
const PATIENCE: Duration = Duration::from_secs(5);

/// Opens the first session, and has connections captured. Without a session there is one later: as soon
/// as a path may be used and, for captured connections, as soon as the server can be reached.
///
/// # Errors
/// [`CommandError`]; then nothing is captured.
pub(super) async fn open(
    servers: &Servers,
    taken: Option<&Capture>,
    outage: &Outage,
    interrupts: &mut Interrupts,
) -> Result<Option<Session>, CommandError> {
    if let Some(taken) = taken.filter(|taken| taken.refuses_at_first()) {
        taken.begin()?;
    }
    let limit = taken.map_or(Duration::MAX, |_| PATIENCE);
    let session = match dial::open_first(servers, limit, interrupts).await {
        Ok(session) => Some(session),
        // Programs are told why, and there is a session as soon as a path may be used.
        Err(CommandError::Connect(ConnectError::Withheld { .. })) => None,
        Err(CommandError::Connect(error)) if taken.is_some() && may_pass(&error) => {
            let refuses = taken.is_some_and(Capture::refuses_at_first);
            let meanwhile = if refuses { "are refused" } else { "go DIRECTLY" };
            tracing::warn!(
                "the server is not reached yet: {error}. It is tried until it is; connections to capture \
                 {meanwhile} meanwhile (--when-down)"
            );
            outage.note_failure(&error, None);
            None
        }
        Err(error) => return Err(error),
    };
    if let Some(taken) = taken.filter(|_| session.is_some()) {
        taken.begin()?;
    }
    Ok(session)
}

/// Whether another attempt may succeed where nothing but the network changes.
fn may_pass(error: &ConnectError) -> bool {
    matches!(
        error,
        ConnectError::NoPath { .. } | ConnectError::NoInterface(_) | ConnectError::Resolve { .. }
    )
}
