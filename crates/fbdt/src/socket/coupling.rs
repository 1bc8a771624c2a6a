//! Subflows of one session that share their congestion control.
//!
//! Rule: F14.

use std::fmt;
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

use fbdt_proto::Role;
use fbdt_proto::handshake::SessionId;

/// Is told of every connection of every session, so that a congestion control that couples them
/// can find those that belong together.
pub trait Coupling: fmt::Debug + Send + Sync {
    /// `socket` is a subflow of `session`, which is this end's number of it and never 0.
    ///
    /// # Errors
    /// What the system says; the subflow is then not coupled.
    fn join(&self, socket: BorrowedFd<'_>, session: u64) -> io::Result<()>;
}

/// What all sockets of one session have in common.
#[derive(Debug, Clone, Default)]
pub(crate) struct SessionSockets {
    /// The session's measured loss changes the congestion control.
    pub(crate) automatic: bool,
    coupled: Option<(Arc<dyn Coupling>, u64)>,
}

impl SessionSockets {
    pub(crate) fn new(
        automatic: bool,
        coupling: Option<&Arc<dyn Coupling>>,
        session: &SessionId,
        role: Role,
    ) -> Self {
        let coupled = coupling.map(|coupling| (coupling.clone(), number(session, role)));
        Self { automatic, coupled }
    }

    /// A socket of the session's.
    pub(crate) fn add(&self, socket: BorrowedFd<'_>) {
        let Some((coupling, session)) = &self.coupled else { return };
        if let Err(error) = coupling.join(socket, *session) {
            tracing::warn!(%error, "a subflow is not coupled with its siblings");
        }
    }
}

/// Both ends of a session may be on one machine: what they send has nothing in common.
fn number(session: &SessionId, role: Role) -> u64 {
    let mut low = [0; 8];
    low.copy_from_slice(&session[..8]);
    let end = if role == Role::Server { 3 } else { 2 };
    (u64::from_le_bytes(low) & !3) | end
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;
    use std::sync::Mutex;

    #[derive(Debug, Default)]
    struct Noted(Mutex<Vec<u64>>);

    impl Coupling for Noted {
        fn join(&self, _: BorrowedFd<'_>, session: u64) -> io::Result<()> {
            self.0.lock().unwrap().push(session);
            Ok(())
        }
    }

    #[test]
    fn both_ends_of_a_session_and_other_sessions_are_told_apart() {
        let noted = Arc::new(Noted::default());
        let coupling: Arc<dyn Coupling> = noted.clone();
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        for session in [[0; 16], [7; 16]] {
            for role in [Role::Client, Role::Server] {
                let sockets = SessionSockets::new(false, Some(&coupling), &session, role);
                sockets.add(socket.as_fd());
                sockets.add(socket.as_fd());
            }
        }
        SessionSockets::default().add(socket.as_fd());
        let mut seen = noted.0.lock().unwrap().clone();
        assert_eq!(seen.len(), 8);
        assert!(seen.iter().all(|session| *session != 0));
        seen.dedup();
        assert_eq!(seen.len(), 4, "one number for each end of each session");
    }
}
