//! Records a sent frame in the totals of its path, class and session.

use core::ops::Range;
use core::time::Duration;

use fbdt_units::{Space, time_for};

use super::Transmission;
use crate::path::{Chunk, CopyReason};
use crate::scale::TICK;
use crate::session::Session;

/// Bytes of a stream, or a message or gap, that leave in one frame.
pub(super) struct Departure {
    /// Where they belong.
    pub(super) space: Space,
    /// Where in it.
    pub(super) range: Range<u64>,
    /// The application's bytes among them.
    pub(super) data: u64,
    /// Why they leave again; `None` for the first time.
    pub(super) copy: Option<CopyReason>,
}

impl Session {
    /// Enters what left on the accounts of its path, class and session.
    pub(super) fn account(
        &mut self,
        tx: &Transmission<'_>,
        Departure { space, range, data, copy }: Departure,
    ) {
        let (now, path, view) = (tx.now, tx.path, tx.view());
        let ordinary = space != Space::Control;
        let class = self.streams.get(&space.stream()).filter(|_| ordinary).map(|s| s.send.class);
        let class = class.map(|class| &mut self.totals.classes[class as usize]);
        let state = &mut self.paths[path];
        match copy {
            Some(reason) => {
                if let Some(class) = class {
                    class.copied[reason as usize] += data;
                }
                state.counters.copied[reason as usize] += data;
                self.totals.copied[reason as usize] += data;
            }
            None => {
                if let Some(class) = class {
                    class.new_bytes += data;
                }
                state.counters.new_bytes += data;
                self.totals.new_bytes += data;
            }
        }
        if let Some(subflow) = &mut state.subflow {
            subflow.answers.ask(now);
        }
        // To its last byte; what little is known of a rate that is still being found out would make
        // that far too long.
        let there = if view.ramping { Duration::ZERO } else { time_for(data, view.rate) };
        state.in_flight.push_back(Chunk {
            stream: space.to_wire(),
            copied: range.start,
            range,
            sent: now,
            expected: now + view.arrival + there + TICK * 3,
            cold: state.is_cold(now),
        });
        if copy.is_none() && ordinary {
            self.count_share(path, data);
        }
    }
}
