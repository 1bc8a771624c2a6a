//! How many UDP flows there are and what they have carried, for those who watch. A flow is an
//! association: that of one program's port (`--tun`), or of one client of the SOCKS5 proxy.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::status::UdpReport;

/// The flows of a process.
#[derive(Debug, Default)]
pub struct Flows {
    open: AtomicU64,
    opened: AtomicU64,
    sent: Carried,
    received: Carried,
    dropped: Carried,
}

/// What went one way.
#[derive(Debug, Default)]
struct Carried {
    datagrams: AtomicU64,
    bytes: AtomicU64,
}

impl Carried {
    fn count(&self, bytes: usize) {
        self.datagrams.fetch_add(1, Ordering::Relaxed);
        self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Datagrams and bytes.
    fn sums(&self) -> (u64, u64) {
        (self.datagrams.load(Ordering::Relaxed), self.bytes.load(Ordering::Relaxed))
    }
}

impl Flows {
    /// One more is open, until what is returned is dropped.
    pub fn begin(self: &Arc<Self>) -> Flow {
        self.open.fetch_add(1, Ordering::Relaxed);
        self.opened.fetch_add(1, Ordering::Relaxed);
        Flow(Arc::clone(self))
    }

    /// A datagram of so many bytes was dropped at this end.
    pub fn dropped(&self, bytes: usize) {
        self.dropped.count(bytes);
    }

    /// For `sumrate status`; nothing if there never was a flow.
    pub fn report(&self) -> Option<UdpReport> {
        let opened = self.opened.load(Ordering::Relaxed);
        let (sent_datagrams, sent_bytes) = self.sent.sums();
        let (received_datagrams, received_bytes) = self.received.sums();
        let (dropped_datagrams, dropped_bytes) = self.dropped.sums();
        (opened > 0).then(|| UdpReport {
            flows: self.open.load(Ordering::Relaxed),
            opened,
            sent_datagrams,
            sent_bytes,
            received_datagrams,
            received_bytes,
            dropped_datagrams,
            dropped_bytes,
        })
    }
}

/// An open flow.
#[derive(Debug)]
pub struct Flow(Arc<Flows>);

impl Flow {
    /// This end gave a datagram of so many bytes, without headers, to a path.
    pub fn sent(&self, bytes: usize) {
        self.0.sent.count(bytes);
    }

    /// One was dropped at this end.
    pub fn dropped(&self, bytes: usize) {
        self.0.dropped(bytes);
    }

    /// One arrived.
    pub fn received(&self, bytes: usize) {
        self.0.received.count(bytes);
    }
}

impl Drop for Flow {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_flows_carry_is_counted_and_stays_when_they_end() {
        let flows = Arc::new(Flows::default());
        assert_eq!(flows.report(), None, "whoever has no datagrams is told nothing of them");
        let (one, two) = (flows.begin(), flows.begin());
        one.sent(100);
        two.sent(11);
        two.received(0);
        one.dropped(5);
        flows.dropped(6);
        drop(two);
        let wanted = UdpReport {
            flows: 1,
            opened: 2,
            sent_datagrams: 2,
            sent_bytes: 111,
            received_datagrams: 1,
            received_bytes: 0,
            dropped_datagrams: 2,
            dropped_bytes: 11,
        };
        assert_eq!(flows.report(), Some(wanted));
        drop(one);
        assert_eq!(flows.report().map(|report| report.flows), Some(0));
    }
}
