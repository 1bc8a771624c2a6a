//! How much writers may leave here, and which windows the peer is asked for.
//!
//! Rule: F2.

use fbdt_units::{Class, Classes, Instant, StreamId};
use fbdt_wire::{Frame, Outgoing};

use super::Session;
use crate::path::PathView;
use crate::scale::{NOISE, TICK};
use crate::stream::MOST_WAITING;
use crate::window::{WindowSize, unsent_ahead, wanted_buffer};

impl Session {
    /// Sizes writers' buffers and wishes for the peer's windows (F2): all of
    /// them now and then, and at once those of streams that have just come to
    /// their limit or soon will, because the first window is small.
    pub(super) fn size_buffers(&mut self, now: Instant, views: &[PathView], out: &mut Outgoing) {
        let all_blocked =
            self.busy.any_blocked(Classes::NONE) && self.busy.next_ready(None).is_none();
        let pause = if all_blocked { TICK } else { NOISE };
        let due = now.saturating_since(self.last_buffer_check) >= pause;
        if !due && self.near_limit.is_empty() {
            return;
        }
        let frame = self.paths.iter().map(crate::path::PathState::frame).max().unwrap_or(4096);
        let wanted = wanted_buffer(views, WindowSize::of(&self.config, views, frame));
        // Bytes that the writers of each class may leave unsent, all together.
        let ahead = Class::ALL.map(|class| match self.needs.looks_ahead {
            true => u64::MAX,
            false => unsent_ahead(&self.views_of(views, class), self.config.max_stream_window),
        });
        let mut ids = core::mem::take(&mut self.near_limit);
        if due {
            self.last_buffer_check = now;
            ids.extend(self.busy.ids());
            let waiting = |class| 2 * unsent_ahead(&self.views_of(views, class), MOST_WAITING / 2);
            // Twice: a writer goes on when half of it is free. No scheduler looks at messages.
            self.size_messages(Class::ALL.map(waiting));
        }
        for id in ids {
            if self.size_buffer(now, id, wanted, &ahead) {
                Frame::Want { stream: id, window: wanted }.encode(out.encoder());
            }
        }
    }

    /// Sizes one writer's buffer; says whether the peer should hear that a window of `wanted` bytes
    /// would help.
    fn size_buffer(&mut self, now: Instant, id: StreamId, wanted: u64, ahead: &[u64]) -> bool {
        let max = self.config.max_stream_window.min(self.send_share());
        let least = self.least_capacity();
        let Some(stream) = self.streams.get_mut(&id) else { return false };
        let send = &mut stream.send;
        send.capacity = wanted.min(max).max(least);
        // The streams that take turns share what the paths will soon take.
        let ahead = ahead[send.class as usize];
        send.ahead = (ahead / self.busy.sharing(send.class).max(1)).max(least);
        if send.wakes_writer() {
            self.events.push_back(crate::Event::Writable(id));
        }
        let window = send.limit.saturating_sub(send.cumulative);
        let near = send.limit.saturating_sub(send.highest_sent()) < wanted / 2;
        // Slow start doubles the rates in each RTT: the wish must keep pace.
        let grown = wanted >= stream.asked + stream.asked / 4;
        // Who has little to send needs no more, and a peer that holds all that it may, because nobody
        // reads there, gives none.
        let needs = send.backlog() > window / 2 && window > 0;
        let again = grown || stream.wants.are_due(now, window);
        let asks = !send.is_over() && near && needs && wanted > window && again;
        if asks {
            stream.wants.ask(now, window);
            stream.asked = wanted;
        }
        asks
    }
}
