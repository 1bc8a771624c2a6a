//! Dials a target: every address is checked by the policy, then tried in turn, a new attempt every
//! 250 ms beside the ones still pending (RFC 8305).

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::task::JoinSet;

use super::allowance::Allowance;
use super::policy::{Policy, RefusedReason};
use super::resolve::{ResolveError, resolve};
use crate::service::FailureCode;
use crate::socket;

/// Time between two attempts.
const STAGGER: Duration = Duration::from_millis(250);
/// Longest time for all attempts together.
const DIAL_TIMEOUT: Duration = Duration::from_secs(10);

/// Why a target was not reached.
#[derive(Debug, thiserror::Error)]
pub enum DialError {
    /// No address for the name.
    #[error(transparent)]
    Resolve(#[from] ResolveError),
    /// The policy forbids every address of the target.
    #[error("the exit does not reach {target}: {reason}; {advice}", advice = advice(*reason))]
    NotAllowed {
        /// The address.
        target: SocketAddr,
        /// Why.
        reason: RefusedReason,
    },
    /// The last attempt failed like this.
    #[error("cannot connect to {target}: {error}")]
    Connect {
        /// The address.
        target: SocketAddr,
        /// What the system said.
        error: io::Error,
    },
    /// No answer in time.
    #[error("{0} did not answer within 10 s")]
    TimedOut(String),
}

impl DialError {
    /// The code that the client is told.
    pub fn code(&self) -> FailureCode {
        match self {
            Self::Resolve(_) => FailureCode::NameFailure,
            Self::NotAllowed { .. } => FailureCode::NotAllowed,
            Self::TimedOut(_) => FailureCode::TimedOut,
            Self::Connect { error, .. } => match error.kind() {
                io::ErrorKind::ConnectionRefused => FailureCode::Refused,
                io::ErrorKind::NetworkUnreachable | io::ErrorKind::AddrNotAvailable => {
                    FailureCode::NetworkUnreachable
                }
                io::ErrorKind::HostUnreachable => FailureCode::HostUnreachable,
                io::ErrorKind::TimedOut => FailureCode::TimedOut,
                _ => FailureCode::General,
            },
        }
    }
}

/// Connects to targets for clients.
#[derive(Debug, Clone)]
pub struct Dialer {
    policy: Policy,
    congestion_control: String,
}

impl Dialer {
    /// A dialer under this policy, whose sockets use this congestion control.
    pub fn new(policy: Policy, congestion_control: &str) -> Self {
        Self { policy, congestion_control: congestion_control.to_owned() }
    }

    /// Resolves, checks and connects for a client with this allowance.
    pub async fn dial(
        &self,
        host: &str,
        port: u16,
        allowance: &Allowance,
    ) -> Result<TcpStream, DialError> {
        let targets = self.permitted(resolve(host, port).await?, allowance)?;
        tokio::time::timeout(DIAL_TIMEOUT, self.race(targets))
            .await
            .map_err(|_| DialError::TimedOut(format!("{host}:{port}")))?
    }

    fn permitted(
        &self,
        found: Vec<SocketAddr>,
        allowance: &Allowance,
    ) -> Result<Vec<SocketAddr>, DialError> {
        let own = own_addresses();
        let mut refusal = None;
        let mut permitted = Vec::new();
        for target in found {
            match allowance.check(target).and_then(|()| self.policy.check(target, &own)) {
                Ok(()) => permitted.push(target),
                Err(reason) => refusal = refusal.or(Some(DialError::NotAllowed { target, reason })),
            }
        }
        match refusal {
            Some(refusal) if permitted.is_empty() => Err(refusal),
            _ => Ok(permitted),
        }
    }

    async fn race(&self, targets: Vec<SocketAddr>) -> Result<TcpStream, DialError> {
        let mut waiting = targets.into_iter();
        let mut attempts = JoinSet::new();
        let mut last = None;
        loop {
            if let Some(target) = waiting.next() {
                let congestion_control = self.congestion_control.clone();
                attempts.spawn(async move {
                    socket::connect(target, &congestion_control)
                        .await
                        .map_err(|error| DialError::Connect { target, error })
                });
            }
            let stagger = tokio::time::sleep(STAGGER);
            let more = waiting.len() > 0;
            tokio::select! {
                finished = attempts.join_next() => match finished {
                    Some(Ok(Ok(stream))) => return Ok(stream),
                    Some(Ok(Err(error))) => last = Some(error),
                    Some(Err(_)) => {}
                    None => return Err(last.unwrap_or(DialError::TimedOut("the target".to_owned()))),
                },
                () = stagger, if more => {}
            }
        }
    }
}

fn advice(reason: RefusedReason) -> &'static str {
    match reason {
        RefusedReason::NotForCredential => "the server's operator can make one that does",
        _ => "the server's --allow can open it",
    }
}

/// The addresses of this machine's interfaces, now.
fn own_addresses() -> Vec<IpAddr> {
    crate::interfaces::addresses().into_iter().map(|(_, address)| address).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::net::TcpListener;

    fn dialer(allow: &[&str]) -> Dialer {
        let rules = allow.iter().map(|rule| rule.parse().unwrap()).collect();
        Dialer::new(Policy::new(rules, Vec::new()), "cubic")
    }

    #[tokio::test]
    async fn forbidden_targets_are_not_dialled() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let any = Allowance::default();
        for host in ["127.0.0.1", "::ffff:127.0.0.1", "localhost", "0x7f.1", "2130706433", "127.1"]
        {
            let error = dialer(&[]).dial(host, port, &any).await.unwrap_err();
            let code = error.code();
            assert!(
                matches!(code, FailureCode::NotAllowed | FailureCode::NameFailure),
                "{host}: {error}"
            );
        }
    }

    #[tokio::test]
    async fn a_permitted_target_is_reached_after_a_dead_one() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let good = listener.local_addr().unwrap();
        let closed = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let dead = closed.local_addr().unwrap();
        drop(closed);
        let stream = dialer(&[]).race(vec![dead, good]).await.unwrap();
        assert_eq!(stream.peer_addr().unwrap(), good);
        let error = dialer(&[]).race(vec![dead]).await.unwrap_err();
        assert_eq!(error.code(), FailureCode::Refused);
    }

    #[tokio::test]
    async fn allow_opens_loopback() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        assert!(
            dialer(&["127.0.0.0/8"]).dial("127.0.0.1", port, &Allowance::default()).await.is_ok()
        );
    }
}
