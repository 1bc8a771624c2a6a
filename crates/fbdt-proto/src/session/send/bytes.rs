//! Offers of new bytes, one stream after the other, and the frames that carry bytes.

use core::ops::Range;

use fbdt_units::{Space, StreamId};
use fbdt_wire::encode_data_header;

use super::account::Departure;
use super::offers::Offers;
use super::scheduled::Sent;
use super::{Refusal, Transmission};
use crate::path::CopyReason;
use crate::scale::FRAME;
use crate::schedule::{JustInTime, PlacementRequest, Scheduler};
use crate::session::Session;
use crate::session::turns::Turn;
use crate::stats::WhyIdle;

impl Session {
    /// The first stream behind `turn` whose new bytes may go by the path.
    pub(super) fn next_bytes(&self, path: usize, turn: Option<Turn>) -> Option<Turn> {
        let mut next = self.busy.next_ready(turn)?;
        while self.is_kept_off(path, next.id) {
            next = self.busy.next_ready(Some(next.end_of_class()))?;
        }
        Some(next)
    }

    /// Sends new bytes of the stream whose turn it is; the next stream's turn comes if it is refused.
    pub(super) fn send_bytes(
        &mut self,
        tx: &mut Transmission<'_>,
        offers: &mut Offers,
        turn: Turn,
    ) -> bool {
        if !self.may_carry(tx.path, turn.id) {
            // Nor bytes of any stream behind it: urgent ones come first.
            tx.bytes_refused = Some(Refusal::Share);
            return false;
        }
        let Some(range) = self.place(tx, turn.id) else {
            offers.bytes = self.next_bytes(tx.path, Some(turn));
            return false;
        };
        // Paths whose bytes the scheduler left to this one are asked again: its window may be full
        // now, its turn over, or bytes of others assigned.
        self.news += u64::from(self.needs.defers);
        self.emit(tx, turn.id, range, None);
        true
    }

    /// New bytes of one stream for the path, taken from what is unsent; `None`, with the reason as the
    /// refusal, if it gets none.
    fn place(&mut self, tx: &mut Transmission<'_>, id: StreamId) -> Option<Range<u64>> {
        let (now, path, all_paths) = (tx.now, tx.path, tx.views);
        let views = &*self.views_for(all_paths, id);
        let frame = self.paths[path].frame();
        let credit = self.credit.send_limit.saturating_sub(self.credit.sent);
        let send = &mut self.streams.get_mut(&id)?.send;
        let credit = if id == StreamId::CONTROL { u64::MAX } else { credit };
        let bound = send.bound(credit);
        let front = send.unsent.first().map_or(0, |r| r.start);
        if front >= bound {
            tx.bytes_refused = Some(Refusal::Other(WhyIdle::FlowControl));
            return None;
        }
        let request = PlacementRequest {
            now,
            paths: views,
            all_paths,
            path,
            stream: id,
            bound,
            limit: send.allowance(credit),
            acked: send.cumulative,
            sharing: self.busy.sharing(send.class),
            unsent: &send.unsent,
            under_way: &Sent { id, send, paths: &self.paths },
            frame,
        };
        // The session's own words go the product's way under any policy.
        let placed = if id == StreamId::CONTROL {
            JustInTime.place(request)
        } else {
            self.scheduler.place(request)
        };
        match &placed {
            Some(range) => send.unsent.remove(range.clone()),
            None => {
                let late = crate::path::lead(views, path) > 0;
                tx.bytes_refused = Some(Refusal::Other(match () {
                    () if self.needs.defers => WhyIdle::LeftToAnother,
                    () if late => WhyIdle::TooLate,
                    () => WhyIdle::WindowsFull,
                }));
            }
        }
        placed
    }

    /// Makes the frame and enters it on the path's account.
    pub(super) fn emit(
        &mut self,
        tx: &mut Transmission<'_>,
        id: StreamId,
        range: Range<u64>,
        copy: Option<CopyReason>,
    ) {
        let Some(stream) = self.streams.get_mut(&id) else {
            return;
        };
        let fin = stream.send.includes_end(&range);
        let data = range.end - range.start - u64::from(fin);
        let highest = stream.send.highest_sent();
        let length = u32::try_from(data).unwrap_or(0);
        encode_data_header(tx.out.encoder(), id, range.start, fin, length);
        stream.send.emit(range.clone(), tx.out);
        if copy.is_none() {
            if id != StreamId::CONTROL {
                self.clock.serve(stream.send.class, stream.send.served);
            }
            stream.send.served += data;
            if stream.send.wakes_writer() {
                self.events.push_back(crate::Event::Writable(id));
            }
            // Idle paths copy short flows at once (F10).
            self.news += u64::from(stream.send.is_short_tail(FRAME));
        }
        if id != StreamId::CONTROL {
            self.credit.sent += stream.send.highest_sent() - highest;
        }
        if self.needs.repeats.is_some()
            && let Some(subflow) = &self.paths[tx.path].subflow
        {
            self.scheduler.sent(id, subflow.id, &range);
        }
        let space = Space::bytes_of(id);
        self.account(tx, Departure { space, range, data, copy });
        self.refresh_turn(id);
    }
}
