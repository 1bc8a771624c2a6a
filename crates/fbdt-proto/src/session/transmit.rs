//! What leaves on a subflow next: acknowledgements, limits and probes first, then the best offer.

use alloc::string::ToString;
use alloc::vec::Vec;

use fbdt_units::{Instant, Space, StreamId, SubflowId};
use fbdt_wire::{AckFrame, Frame, Outgoing, close_code};

use super::Session;
use crate::error::CloseReason;
use crate::path::Health;

/// Acknowledgements that leave together.
const ACK_BATCH: usize = 256;

impl Session {
    /// Appends the next frame for `subflow` to `out`; `false` if there is
    /// nothing for it now. Call it while the socket takes bytes.
    pub fn poll_transmit(&mut self, now: Instant, subflow: SubflowId, out: &mut Outgoing) -> bool {
        let Some(path) = self.path_of(subflow) else {
            return false;
        };
        let before = out.len();
        self.leave(now);
        if self.close.is_some() {
            return self.transmit_close(path, out);
        }
        self.transmit_service(now, path, out);
        if out.len() == before {
            self.transmit_data(now, path, out);
        }
        let sent = (out.len() - before) as u64;
        self.paths[path].spend(now, sent);
        let Some(subflow) = &mut self.paths[path].subflow else {
            return sent > 0;
        };
        if sent == 0 {
            subflow.idle_at = Some(self.news);
        } else {
            // Nothing was owed until now: silence counts from here.
            if subflow.sample.outstanding() + subflow.since_sample == 0 {
                subflow.progress.mark(now);
            }
            subflow.since_sample += sent;
        }
        sent > 0
    }

    /// A cheap guess whether [`Session::poll_transmit`] would do anything.
    #[must_use]
    pub fn can_transmit(&self, now: Instant, subflow: SubflowId) -> bool {
        let Some(path) = self.path_of(subflow) else {
            return false;
        };
        let path = &self.paths[path];
        let Some(subflow) = &path.subflow else {
            return false;
        };
        if self.close.is_some() {
            return !subflow.close_sent;
        }
        let acks = subflow.ack_at(self.config.ack_interval).is_some_and(|at| at <= now);
        let service =
            acks || subflow.session_limit_due || subflow.pong_due.is_some() || subflow.ping_due;
        // Subflows that had nothing would wake each other for ever.
        let news = subflow.idle_at != Some(self.news);
        let serving = path.health == Health::Active && !path.standby;
        let sending = serving && !(self.busy.is_empty() && self.talking.is_empty());
        service || (sending && news && path.has_room() && !path.is_capped(now))
    }

    fn transmit_close(&mut self, path: usize, out: &mut Outgoing) -> bool {
        let Some(subflow) = &mut self.paths[path].subflow else {
            return false;
        };
        if core::mem::replace(&mut subflow.close_sent, true) {
            return false;
        }
        // The peer learns what has arrived: it may wait for nothing else.
        self.transmit_acks(path, usize::MAX, out);
        let (code, reason) = match &self.close {
            Some(CloseReason::Local { code, reason }) => (*code, reason.clone()),
            Some(CloseReason::Protocol(error)) => (error.code(), error.to_string()),
            _ => (close_code::NONE, "closed".into()),
        };
        Frame::Close { code, reason }.encode(out.encoder());
        true
    }

    /// Acknowledgements, limits and probes (F8).
    fn transmit_service(&mut self, now: Instant, path: usize, out: &mut Outgoing) {
        let Some(subflow) = &mut self.paths[path].subflow else {
            return;
        };
        if core::mem::take(&mut subflow.session_limit_due) {
            Frame::SessionLimit { limit: self.credit.receive_limit }.encode(out.encoder());
        }
        if let Some((token, at)) = subflow.pong_due.take() {
            Frame::Pong { token, received: at.as_nanos() }.encode(out.encoder());
        }
        if core::mem::take(&mut subflow.ping_due) {
            Frame::Ping { token: now.as_nanos() }.encode(out.encoder());
            subflow.answers.ask(now);
        }
        if subflow.ack_at(self.config.ack_interval).is_none_or(|at| at > now) {
            return;
        }
        subflow.last_ack = now;
        (subflow.unacked, subflow.ack_hurries) = (0, false);
        self.transmit_acks(path, ACK_BATCH, out);
    }

    /// At most so many of the acknowledgements that are owed on a path.
    fn transmit_acks(&mut self, path: usize, most: usize, out: &mut Outgoing) {
        let Some(subflow) = &mut self.paths[path].subflow else {
            return;
        };
        for _ in 0..most {
            // In turn: streams with low numbers may owe again before the last
            // one's turn has come.
            let mut later = subflow.ack_streams.range(subflow.ack_from..);
            let Some(id) = later.next().or(subflow.ack_streams.first()).copied() else {
                break;
            };
            subflow.ack_streams.remove(&id);
            subflow.ack_from = StreamId(id.0.saturating_add(1));
            let space = Space::of_wire(id);
            let ack = match self.streams.get(&space.stream()) {
                // The session threw its bytes away when it ended: it acknowledges none of them.
                Some(stream) if self.close.is_some() && !stream.receive.is_complete() => continue,
                Some(stream) => stream.acknowledgement(space),
                // It is over and forgotten.
                None => AckFrame { stream: id, cumulative: u64::MAX, limit: 0, ranges: Vec::new() },
            };
            Frame::Ack(ack).encode(out.encoder());
        }
    }
}
