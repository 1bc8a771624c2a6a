//! Which connection has which port of the device's peer.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::time::Instant;

use super::{KEPT_AFTER_END, KEPT_SILENT};

/// The first port that is given out.
const FIRST_PORT: u16 = 1024;
/// So many ports are looked at when the table is full, for one whose time has passed.
const SWEEP: usize = 64;

/// A connection as the program sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Flow {
    pub(super) source: SocketAddr,
    pub(super) destination: SocketAddr,
}

#[derive(Debug)]
struct Entry {
    flow: Flow,
    ended: bool,
    last: Instant,
}

impl Entry {
    fn is_over(&self, now: Instant) -> bool {
        let kept = if self.ended { KEPT_AFTER_END } else { KEPT_SILENT };
        now.saturating_duration_since(self.last) > kept
    }
}

/// Connections of one address family.
#[derive(Debug, Default)]
pub(super) struct Flows {
    ports: HashMap<Flow, u16>,
    entries: HashMap<u16, Entry>,
    next: u16,
}

impl Flows {
    /// The port of a connection that begins, or begins again; `None` if none is free.
    pub(super) fn begin(&mut self, flow: Flow, now: Instant) -> Option<u16> {
        let port = match self.ports.get(&flow) {
            Some(port) => *port,
            None => self.free_port(now)?,
        };
        self.ports.insert(flow, port);
        self.entries.insert(port, Entry { flow, ended: false, last: now });
        Some(port)
    }

    /// The port of a connection that has begun.
    pub(super) fn number(&self, flow: &Flow) -> Option<u16> {
        self.ports.get(flow).copied()
    }

    /// The connection with a port.
    pub(super) fn at(&self, port: u16) -> Option<Flow> {
        self.entries.get(&port).map(|entry| entry.flow)
    }

    /// Notes a segment of the connection with a port, and whether it ends it.
    pub(super) fn seen(&mut self, port: u16, ends: bool, now: Instant) -> Option<Flow> {
        let entry = self.entries.get_mut(&port)?;
        entry.last = now;
        entry.ended |= ends;
        Some(entry.flow)
    }

    fn free_port(&mut self, now: Instant) -> Option<u16> {
        for _ in 0..SWEEP {
            let port = self.next.max(FIRST_PORT);
            self.next = port.checked_add(1).unwrap_or(FIRST_PORT);
            match self.entries.get(&port) {
                None => return Some(port),
                Some(entry) if entry.is_over(now) => {
                    self.ports.remove(&entry.flow);
                    return Some(port);
                }
                Some(_) => {}
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn flow(port: u16) -> Flow {
        let source = SocketAddr::from(([10, 0, 0, 1], port));
        Flow { source, destination: SocketAddr::from(([203, 0, 113, 1], 80)) }
    }

    #[test]
    fn a_connection_keeps_its_port_and_ended_ones_give_theirs_back() {
        let (mut flows, start) = (Flows::default(), Instant::now());
        let first = flows.begin(flow(1), start).unwrap();
        assert_eq!(flows.begin(flow(1), start), Some(first));
        assert_eq!(flows.number(&flow(1)), Some(first));
        assert_eq!(flows.at(first), Some(flow(1)));
        assert_eq!(flows.seen(first, false, start), Some(flow(1)));
        assert_eq!(flows.number(&flow(2)), None);
        assert_eq!(flows.seen(9, false, start), None);
        for port in 2..=(u16::MAX - FIRST_PORT + 1) {
            assert!(flows.begin(flow(port), start).is_some(), "{port}");
        }
        assert_eq!(flows.begin(flow(u16::MAX), start), None, "all ports are taken");
        flows.seen(first, true, start);
        let soon = start + KEPT_AFTER_END;
        assert_eq!(flows.begin(flow(u16::MAX), soon), None);
        let later = soon + Duration::from_millis(1);
        let found = (0..1100).find_map(|_| flows.begin(flow(u16::MAX), later));
        assert_eq!(found, Some(first));
        assert_eq!(flows.number(&flow(1)), None);
    }
}
