//! Offers of bytes and messages whose subflow is gone.

use alloc::vec::Vec;

use fbdt_units::{Class, Classes, Instant, StreamId};

use super::Transmission;
use super::offers::{Again, Kind, Level, Rank, What};
use crate::path::CopyReason;
use crate::session::Session;

impl Session {
    /// Adds what was lost of the control stream, and of each class that the path may carry.
    pub(super) fn offer_repairs(&self, path: usize, offers: &mut Vec<Again>) {
        let mut offer = |class, kind| {
            offers.push(Again { rank: Rank::again(Level::Due, class, kind), what: What::Lost });
        };
        if self.busy.first_lost(None).is_some() {
            offer(None, Kind::LostBytes);
        }
        let never = self.paths[path].policy.never;
        let lost = |id: &StreamId| {
            let stream = self.streams.get(id)?;
            stream.messages.as_ref()?.out.has_lost().then_some(stream.send.class)
        };
        let messages: Classes = self.talking.iter().filter_map(lost).collect();
        for class in Class::ALL.into_iter().filter(|class| !never.contains(*class)) {
            if messages.contains(class) {
                offer(Some(class), Kind::LostMessages);
            }
            if self.busy.first_lost(Some(class)).is_some() {
                offer(Some(class), Kind::LostBytes);
            }
        }
    }

    /// Sends the first lost bytes, or the first lost message, of the rank's class.
    pub(super) fn send_lost(&mut self, tx: &mut Transmission<'_>, rank: Rank) -> bool {
        match rank.class {
            Some(class) if rank.kind == Kind::LostMessages => self.send_lost_message(tx, class),
            class => self.send_lost_bytes(tx, class),
        }
    }

    /// Sends a lost message of the class, or a gap in place of one given up: the first that no
    /// sooner path would deliver in time where this one would not.
    fn send_lost_message(&mut self, tx: &mut Transmission<'_>, class: Class) -> bool {
        let lost = self.talkers(class).filter(|(_, out)| out.has_lost());
        let streams: Vec<StreamId> = lost.map(|(id, _)| id).collect();
        let Some(first) = streams.first() else { return false };
        let late = self.standing(tx, *first);
        for id in streams {
            self.expire_messages_of(tx.now, id);
            let Some(channel) = self.channel_mut(id) else { continue };
            let in_time = |at: Instant| late.behind.is_none() || at > late.arrival;
            if let Some(range) = channel.out.take_lost(in_time) {
                self.emit_message(tx, id, range, Some(CopyReason::Lost));
                return true;
            }
        }
        false
    }

    /// Lost bytes of a class, or of the session's own stream.
    fn send_lost_bytes(&mut self, tx: &mut Transmission<'_>, class: Option<Class>) -> bool {
        let frame = self.paths[tx.path].frame();
        while let Some(id) = self.busy.first_lost(class) {
            let Some(stream) = self.streams.get_mut(&id) else {
                self.busy.remove(id);
                continue;
            };
            while let Some(piece) = stream.send.lost.first() {
                let Some(gap) = stream.send.unacknowledged(piece.clone()) else {
                    stream.send.lost.remove(piece);
                    continue;
                };
                let range = gap.start..gap.end.min(gap.start + frame);
                stream.send.lost.remove(piece.start..range.end);
                self.emit(tx, id, range, Some(CopyReason::Lost));
                return true;
            }
            self.refresh_turn(id);
        }
        false
    }
}
