//! What a path may send next, in one order: by class, then by kind, then by urgency.

use alloc::collections::BinaryHeap;
use alloc::vec::Vec;
use core::cmp::Reverse;
use core::ops::Range;

use fbdt_units::{Class, StreamId};

use super::copies::Copied;
use super::messages::{MessageTurn, Standing};
use crate::session::turns::Turn;

/// When an offer is looked for: a later level only if all offers of the one before were refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Level {
    /// Always.
    Due,
    /// The path can send nothing new, and the scheduler repeats bytes then.
    Repeat,
    /// The path is idle (F10).
    Idle,
}

/// Kinds of offers; of one class, an earlier kind is sent first. Kinds of copies are asked in this
/// order, and only until one has an offer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    /// Messages whose subflow is gone.
    LostMessages,
    /// Bytes whose subflow is gone.
    LostBytes,
    /// A copy of what a suspect path owes (F9).
    SuspectCopy,
    /// A copy of overdue bytes (F6).
    OverdueCopy,
    /// A copy of a short flow or of a message (F11, F16).
    PromptCopy,
    /// Bytes that the scheduler repeats.
    Repeated,
    /// New messages and new bytes.
    New,
    /// A copy by an idle path (F10).
    IdleCopy,
}

/// The place of an offer in the order; the least is sent first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Rank {
    pub(super) level: Level,
    /// `None` for the control stream.
    pub(super) class: Option<Class>,
    pub(super) kind: Kind,
    /// Among new ones, what their streams were served (F12). Messages of the two best classes do not
    /// take turns with bytes: they count as served nothing (F16).
    pub(super) served: u64,
    /// Of streams that were served the same, messages go before bytes.
    pub(super) bytes: bool,
}

impl Rank {
    /// An offer of something that was sent before.
    pub(super) const fn again(level: Level, class: Option<Class>, kind: Kind) -> Self {
        Self { level, class, kind, served: 0, bytes: false }
    }

    /// An offer of the first new bytes of a stream.
    pub(super) fn of_bytes(turn: &Turn) -> Self {
        let class = Some(turn.class).filter(|_| turn.id != StreamId::CONTROL);
        let new = Self::again(Level::Due, class, Kind::New);
        Self { served: turn.served, bytes: true, ..new }
    }

    /// An offer of a new message.
    pub(super) fn of_message(turn: &MessageTurn) -> Self {
        let served = if turn.class <= Class::Interactive { 0 } else { turn.served };
        Self { served, ..Self::again(Level::Due, Some(turn.class), Kind::New) }
    }
}

/// Something that was sent before and may be sent again.
pub(super) struct Again {
    pub(super) rank: Rank,
    pub(super) what: What,
}

/// Which bytes or messages are sent again.
pub(super) enum What {
    /// The first lost bytes or messages of the rank's class.
    Lost,
    /// A copy of what another path owes.
    Copy(Copied),
    /// What the scheduler repeats.
    Repeated { id: StreamId, range: Range<u64> },
}

/// The offer that was taken out of [`Offers`].
pub(super) enum Offer {
    Again(Again),
    Message(MessageTurn),
    Bytes(Turn),
}

/// All offers to one path, each kind in its own order; the best of them is found by [`Rank`].
#[derive(Default)]
pub(super) struct Offers {
    pub(super) again: Vec<Again>,
    /// Streams whose first message may be sent.
    pub(super) messages: BinaryHeap<Reverse<MessageTurn>>,
    /// How the path stands with messages of the class that was looked at last.
    pub(super) standing: Option<(Class, Standing)>,
    /// The first stream whose new bytes may be sent. The next one follows if it is refused.
    pub(super) bytes: Option<Turn>,
}

impl Offers {
    /// Takes the best offer out.
    pub(super) fn take_best(&mut self) -> Option<Offer> {
        let message = self.messages.peek().map(|Reverse(turn)| Rank::of_message(turn));
        let bytes = self.bytes.as_ref().map(Rank::of_bytes);
        let again = self.again.iter().enumerate().min_by_key(|(_, again)| again.rank);
        let new = message.into_iter().chain(bytes).min();
        if let Some((index, again)) = again
            && new.is_none_or(|new| again.rank < new)
        {
            return Some(Offer::Again(self.again.swap_remove(index)));
        }
        if message.is_some_and(|message| bytes.is_none_or(|bytes| message < bytes)) {
            return self.messages.pop().map(|Reverse(turn)| Offer::Message(turn));
        }
        self.bytes.take().map(Offer::Bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::Importance;
    use crate::stream::SendStream;

    fn bytes(id: u32, class: Class, served: u64) -> Turn {
        let mut send = SendStream::new(StreamId(id), class, 100, 500);
        send.served = served;
        Turn::of(StreamId(id), &send)
    }

    fn message(class: Class, served: u64) -> MessageTurn {
        let importance = Reverse(Importance::Normal);
        MessageTurn { class, importance, served, id: StreamId(1) }
    }

    fn due(class: Class, kind: Kind) -> Rank {
        Rank::again(Level::Due, Some(class), kind)
    }

    #[test]
    fn f11_new_bytes_of_a_better_class_go_before_what_is_sent_again() {
        let call = Rank::of_bytes(&bytes(1, Class::Conversational, 1 << 40));
        let kinds = [Kind::LostBytes, Kind::SuspectCopy, Kind::OverdueCopy, Kind::Repeated];
        for kind in kinds {
            assert!(call < due(Class::Interactive, kind), "{kind:?}");
            assert!(due(Class::Conversational, kind) < call, "of the same class: {kind:?}");
        }
        let own = Rank::of_bytes(&bytes(0, Class::Conversational, 1 << 40));
        assert!(own < due(Class::Conversational, Kind::LostMessages), "the control stream");
    }

    #[test]
    fn f6_of_a_class_lost_bytes_go_before_copies_and_these_before_new_bytes() {
        let order = [
            due(Class::Streaming, Kind::LostMessages),
            due(Class::Streaming, Kind::LostBytes),
            due(Class::Streaming, Kind::SuspectCopy),
            due(Class::Streaming, Kind::OverdueCopy),
            due(Class::Streaming, Kind::PromptCopy),
            due(Class::Streaming, Kind::Repeated),
            Rank::of_bytes(&bytes(1, Class::Streaming, 0)),
            due(Class::Background, Kind::LostMessages),
            Rank::again(Level::Repeat, Some(Class::Conversational), Kind::Repeated),
            Rank::again(Level::Idle, None, Kind::IdleCopy),
        ];
        assert!(order.is_sorted());
    }

    #[test]
    fn f16_messages_of_the_better_classes_go_first_and_others_take_turns() {
        let of = |class| {
            let [first, last] =
                [Rank::of_message(&message(class, 90)), Rank::of_bytes(&bytes(1, class, 50))];
            first < last
        };
        assert_eq!(Class::ALL.map(of), [true, true, false, false]);
        let (equal, turn) = (message(Class::Background, 50), bytes(1, Class::Background, 50));
        assert!(Rank::of_message(&equal) < Rank::of_bytes(&turn));
    }

    #[test]
    fn the_best_offer_is_taken_first() {
        let mut offers = Offers { bytes: Some(bytes(1, Class::Streaming, 7)), ..Offers::default() };
        offers.messages.push(Reverse(message(Class::Streaming, 3)));
        offers
            .again
            .push(Again { rank: due(Class::Background, Kind::LostBytes), what: What::Lost });
        offers.again.push(Again { rank: due(Class::Streaming, Kind::LostBytes), what: What::Lost });
        let mut order = Vec::new();
        while let Some(offer) = offers.take_best() {
            order.push(match offer {
                Offer::Again(again) => again.rank,
                Offer::Message(turn) => Rank::of_message(&turn),
                Offer::Bytes(turn) => Rank::of_bytes(&turn),
            });
        }
        assert!(order.len() == 4 && order.is_sorted(), "{order:?}");
    }
}
