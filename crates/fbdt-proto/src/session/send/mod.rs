//! Sending bytes and messages: a path with room takes the best of all offers.

mod account;
mod bytes;
mod copies;
mod messages;
mod offers;
mod repair;
mod scheduled;

use alloc::vec::Vec;

use fbdt_units::Instant;
use fbdt_wire::Outgoing;

use self::copies::Occasion;
use self::offers::{Again, Level, Offer, Offers, What};
use super::Session;
use super::policy::Appetite;
use crate::path::{CopyReason, Health, PathView};
use crate::schedule::Repeats;
use crate::stats::WhyIdle;

/// One opportunity of a path to send, until a frame was appended or nothing was found.
struct Transmission<'a> {
    now: Instant,
    /// The path's index.
    path: usize,
    /// All paths as schedulers see them now.
    views: &'a [PathView],
    /// Where the frame goes.
    out: &'a mut Outgoing,
    /// Why the last new bytes that were offered were refused.
    bytes_refused: Option<Refusal>,
    /// Why the last message that was offered was refused.
    message_refused: Option<Refusal>,
}

/// Why an offer was refused, or why a path gets none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// The path has no room, or its cap is reached: it sends as soon as that changes.
    Room(WhyIdle),
    /// The path has carried its share and leaves new bytes to paths that have not (F15).
    Share,
    /// Anything else.
    Other(WhyIdle),
}

impl Refusal {
    /// The reason as reports have it.
    const fn why(self) -> WhyIdle {
        match self {
            Self::Room(why) | Self::Other(why) => why,
            Self::Share => WhyIdle::Weight,
        }
    }
}

impl Transmission<'_> {
    /// The path as schedulers see it.
    fn view(&self) -> &PathView {
        &self.views[self.path]
    }
}

impl Session {
    /// Sends the next bytes or message on the path, if it has room and there is an offer.
    pub(super) fn transmit_data(&mut self, now: Instant, path: usize, out: &mut Outgoing) {
        let took = self.takes_bytes(path);
        let refusal = self.gate(now, path).or_else(|| {
            self.appetites[path] = Appetite::Takes;
            self.transmit_offers(now, path, out)
        });
        self.conclude(now, path, refusal);
        if took && !self.takes_bytes(path) {
            self.wake_shares(path);
        }
    }

    /// Keeps what came of a path's opportunity to send, for its rivals (F15) and for reports.
    pub(super) fn conclude(&mut self, now: Instant, path: usize, refusal: Option<Refusal>) {
        self.appetites[path] = match refusal {
            None | Some(Refusal::Room(_)) => Appetite::Takes,
            Some(Refusal::Share) => Appetite::Leaves,
            Some(Refusal::Other(_)) => Appetite::Declines,
        };
        self.why_idle[path].enter(now, refusal.map_or(WhyIdle::Sending, Refusal::why));
    }

    /// Why a path sends neither bytes nor messages, whatever is pending.
    fn gate(&self, now: Instant, path: usize) -> Option<Refusal> {
        let path = &self.paths[path];
        match path.health {
            Health::Dead => Some(Refusal::Other(WhyIdle::NoSubflow)),
            Health::Suspect => Some(Refusal::Other(WhyIdle::Suspect)),
            // F15: neither new bytes nor copies; probes and acknowledgements do.
            Health::Active if path.standby => Some(Refusal::Other(WhyIdle::Standby)),
            // Nothing is placed on a path of which nothing is known.
            Health::Active if !path.is_usable() => Some(Refusal::Other(WhyIdle::Unmeasured)),
            Health::Active if !path.has_room() => Some(Refusal::Room(WhyIdle::CommitLimit)),
            // F15: the cap holds over any time for everything but acknowledgements and probes.
            Health::Active if path.is_capped(now) => Some(Refusal::Room(WhyIdle::RateCap)),
            Health::Active => None,
        }
    }

    /// Sends the best offer that is not refused; why there was nothing new, if there was not.
    fn transmit_offers(
        &mut self,
        now: Instant,
        path: usize,
        out: &mut Outgoing,
    ) -> Option<Refusal> {
        let views = self.views(now);
        self.size_buffers(now, &views, out);
        self.want_for_messages(now, out);
        let tx = &mut Transmission {
            now,
            path,
            views: &views,
            out,
            bytes_refused: None,
            message_refused: None,
        };
        if self.transmit_due(tx) {
            self.paths[path].idle_since = None;
            return None;
        }
        let refused = tx.message_refused.or(tx.bytes_refused);
        let refused = refused.unwrap_or_else(|| self.nothing_new(path));
        // F15: what only saves time is not worth a metered path's bytes.
        if self.paths[path].policy.metered {
            self.paths[path].idle_since.get_or_insert(now);
        } else if let Some(again) = self.repeated(tx, Repeats::AfterNew, Level::Repeat) {
            self.paths[path].idle_since = None;
            self.send_again(tx, again);
        } else {
            self.paths[path].idle_since.get_or_insert(now);
            if let Some(copy) = self.copy_offer(tx, Occasion::Idle) {
                self.send_again(tx, copy);
            }
        }
        Some(refused)
    }

    /// Sends the best offer of the first level; `false` if all are refused.
    fn transmit_due(&mut self, tx: &mut Transmission<'_>) -> bool {
        let mut offers = self.due_offers(tx);
        while let Some(offer) = offers.take_best() {
            let sent = match offer {
                Offer::Again(again) => {
                    let sent = self.send_again(tx, again);
                    if !sent && offers.again.is_empty() {
                        offers.again.extend(self.copy_or_repeat(tx));
                    }
                    sent
                }
                Offer::Message(turn) => self.send_message_of(tx, &mut offers, turn),
                Offer::Bytes(turn) => self.send_bytes(tx, &mut offers, turn),
            };
            if sent {
                return true;
            }
        }
        false
    }

    /// All offers to the path. Of what was sent before, only the first kind that has any makes offers:
    /// the costs of looking for a copy are spared where something else is sent again.
    fn due_offers(&mut self, tx: &Transmission<'_>) -> Offers {
        let mut again = Vec::new();
        self.offer_repairs(tx.path, &mut again);
        if again.is_empty() {
            again.extend(self.copy_or_repeat(tx));
        }
        let messages = self.message_turns(tx.path);
        let bytes = self.next_bytes(tx.path, None);
        Offers { again, messages, standing: None, bytes }
    }

    /// A copy of what another path owes, or what the scheduler repeats: the first kind that has any.
    fn copy_or_repeat(&mut self, tx: &Transmission<'_>) -> Option<Again> {
        // F15: what only saves time is not worth a metered path's bytes.
        let metered = self.paths[tx.path].policy.metered;
        let last = if metered { 1 } else { Occasion::DUE.len() };
        for occasion in &Occasion::DUE[..last] {
            let found = self.copy_offer(tx, *occasion);
            if found.is_some() {
                return found;
            }
        }
        if metered { None } else { self.repeated(tx, Repeats::BeforeNew, Level::Due) }
    }

    /// Sends what was sent before; `false` if nothing of it is still owed.
    fn send_again(&mut self, tx: &mut Transmission<'_>, Again { rank, what }: Again) -> bool {
        match what {
            What::Lost => self.send_lost(tx, rank),
            What::Copy(copied) => self.send_copy(tx, &copied),
            What::Repeated { id, range } => {
                self.emit(tx, id, range, Some(CopyReason::Scheduled));
                true
            }
        }
    }

    /// Why a path has no offer of anything new.
    fn nothing_new(&self, path: usize) -> Refusal {
        Refusal::Other(match self.keeps_waiting(path) {
            _ if self.busy.any_blocked(self.paths[path].policy.never) => WhyIdle::FlowControl,
            true => WhyIdle::KeptOff,
            false => WhyIdle::NothingToSend,
        })
    }

    /// What schedulers see of the paths now.
    pub(in crate::session) fn views(&self, now: Instant) -> Vec<PathView> {
        let pinned = self.config.forward.as_deref();
        self.paths.iter().map(|p| p.view(now, pinned == Some(p.name.as_str()))).collect()
    }
}
