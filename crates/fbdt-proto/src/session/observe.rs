//! What people and metrics see.

use alloc::vec::Vec;
use core::time::Duration;

use fbdt_units::{Class, Instant, StreamId};

use super::{Session, Stream};
use crate::path::{CopyReason, Health, PathState};
use crate::stats::{ClassStats, IdleTimes, PathStats, SessionStats, StreamStats, WhyIdle};

impl Session {
    /// Everything there is to see, now.
    #[must_use]
    pub fn stats(&self) -> SessionStats {
        let streams = self.streams.iter().filter(|(id, _)| **id != StreamId::CONTROL);
        SessionStats {
            paths: self.path_stats(),
            streams: streams.map(|(id, s)| self.stream(*id, s)).collect(),
            classes: self.class_stats(),
            messages: self.message_stats(),
            windows: self.window_pictures(),
            opened: (self.counts.local, self.counts.peer),
            new_bytes: self.totals.new_bytes,
            redundant_bytes: self.totals.copied.iter().sum(),
            received_bytes: self.totals.received,
            duplicate_bytes: self.totals.duplicate,
            receive_memory: self.receive_memory(),
            receive_buffer_peak: self.totals.held_peak,
            scheduler: self.scheduler.name(),
            coupling: self.config.coupling.name(),
        }
    }

    /// Counters of the paths. The cost does not grow with the streams.
    #[must_use]
    pub fn path_stats(&self) -> Vec<PathStats> {
        self.paths.iter().zip(&self.why_idle).map(|(p, w)| self.path(p, w)).collect()
    }

    /// The classes of the newest open streams, at most `most` of them (F11).
    #[must_use]
    pub fn newest_classes(&self, most: usize) -> Vec<(StreamId, Class)> {
        let streams = self.streams.iter().rev().filter(|(id, _)| **id != StreamId::CONTROL);
        streams.take(most).map(|(id, stream)| (*id, stream.send.class)).collect()
    }

    /// What each class has carried and cost (F11).
    #[must_use]
    pub fn class_stats(&self) -> [ClassStats; Class::ALL.len()] {
        let mut classes = Class::ALL.map(|class| {
            let totals = &self.totals.classes[class as usize];
            let copied = |reason: CopyReason| totals.copied[reason as usize];
            ClassStats {
                class,
                streams: 0,
                new_bytes: totals.new_bytes,
                chosen_bytes: totals.chosen(),
                repaired_bytes: copied(CopyReason::Lost)
                    + copied(CopyReason::Suspect)
                    + totals.freeing,
                asked_bytes: totals.asked,
                scheduled_bytes: copied(CopyReason::Scheduled),
                received_bytes: totals.received,
                duplicate_bytes: totals.duplicate,
            }
        });
        for (_, stream) in self.streams.iter().filter(|(id, _)| **id != StreamId::CONTROL) {
            classes[stream.send.class as usize].streams += 1;
        }
        classes
    }

    /// Memory held for receiving by all streams together, in bytes.
    #[must_use]
    pub fn receive_memory(&self) -> u64 {
        self.streams.values().map(Stream::receive_memory).sum()
    }

    /// For how long so far the peer has held all that it lets this end send of
    /// the stream: its application did not read. Zero once no more will be
    /// written; `None` if there is no such stream.
    #[must_use]
    pub fn reader_wait(&self, now: Instant, id: StreamId) -> Option<Duration> {
        self.streams.get(&id).map(|stream| stream.send.reader_wait(now))
    }

    /// One stream.
    #[must_use]
    pub fn stream_stats(&self, id: StreamId) -> Option<StreamStats> {
        self.streams.get(&id).map(|s| self.stream(id, s))
    }

    fn path(&self, path: &PathState, idle: &IdleTimes) -> PathStats {
        let sample = path.subflow.as_ref().map(|s| s.sample).unwrap_or_default();
        let counters = &path.counters;
        let sent = counters.past_sent + sample.sent_total;
        let again = counters.past_retransmitted + sample.retransmitted_total;
        let copied = |reason: CopyReason| counters.copied[reason as usize];
        PathStats {
            id: path.id,
            name: path.name.clone(),
            health: path.health,
            policy: path.policy,
            direction: self.scheduler.direction(path.id),
            why_idle: match path.health {
                _ if path.subflow.is_none() => WhyIdle::NoSubflow,
                Health::Active if path.standby => WhyIdle::Standby,
                _ => idle.now,
            },
            waited: idle.spent,
            rate: path.model.rate(),
            srtt: sample.srtt,
            min_rtt: path.model.base(),
            commit: path.outstanding(),
            commit_limit: path.commit_limit(),
            shares_with: self.coupling.iter().flat_map(|c| c.sharers(path.id)).collect(),
            new_bytes: counters.new_bytes,
            resent_lost: copied(CopyReason::Lost),
            copied_suspect: copied(CopyReason::Suspect),
            copied_overdue: copied(CopyReason::Overdue),
            copied_idle: copied(CopyReason::Idle),
            copied_scheduled: copied(CopyReason::Scheduled),
            received: counters.received,
            duplicate: counters.duplicate,
            retransmitted_share: if sent == 0 { 0.0 } else { again as f64 / sent as f64 },
            carried: sent + counters.past_received + sample.received_total,
            subflows: counters.subflows,
            suspected: counters.suspected,
        }
    }

    fn stream(&self, id: StreamId, stream: &Stream) -> StreamStats {
        let assembler = &stream.receive.assembler;
        let delay = &assembler.in_order_delay;
        StreamStats {
            id,
            class: stream.send.class,
            class_guessed: stream.class_guessed,
            written: stream.send.written(),
            acknowledged: stream.send.cumulative.min(stream.send.written()),
            received: assembler.cumulative,
            receive_memory: assembler.memory(),
            receive_buffer_peak: assembler.held_peak,
            in_order_delay: [delay.quantile(0.5), delay.quantile(0.99), delay.max()],
            longest_stall: assembler.longest_stall,
            send_limit: stream.send.limit,
            open_windows: self.open_windows(id, &stream.send).count,
            messages: stream.messages.as_ref().map(|channel| channel.stats()).unwrap_or_default(),
        }
    }
}
