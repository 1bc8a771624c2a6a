//! Messages between the two sessions, on stream 0.

use alloc::vec::Vec;

use fbdt_units::{Instant, PathId, Role, Space, StreamId};
use fbdt_wire::ControlMessage;

use super::Session;
use crate::error::{CloseReason, SessionError};
use crate::event::Event;
use crate::path::Health;
use crate::stream::SendState;

/// Control messages are few and small: a peer that leaves this much of them
/// unacknowledged is not honest.
const MAX_BACKLOG: u64 = 1 << 20;

impl Session {
    /// Puts a message on the control stream.
    pub(super) fn send_control(&mut self, message: ControlMessage) {
        let mut bytes = Vec::new();
        message.encode(&mut bytes);
        if let Some(control) = self.streams.get_mut(&StreamId::CONTROL) {
            control.send.capacity = u64::MAX;
            let _ = control.send.write(&bytes);
            if control.send.backlog() > MAX_BACKLOG {
                let reason = SessionError::Control("control messages are not acknowledged");
                self.end(CloseReason::Protocol(reason));
                return;
            }
        }
        self.mark_busy(StreamId::CONTROL);
    }

    /// Acts on what has arrived on the control stream.
    pub(super) fn read_control(&mut self, now: Instant) -> Result<(), SessionError> {
        while let Some(control) = self.streams.get_mut(&StreamId::CONTROL)
            && let Ok(Some(bytes)) = control.receive.read(usize::MAX)
        {
            if control.receive.window.consume(bytes.len() as u64) {
                self.announce(Space::Control);
            }
            self.control_input.extend_from_slice(&bytes);
        }
        self.recount(StreamId::CONTROL);
        let input = core::mem::take(&mut self.control_input);
        let mut at = 0;
        while let Some((message, size)) = ControlMessage::decode(&input[at..])? {
            at += size;
            self.handle_control(now, message)?;
        }
        self.control_input = input[at..].to_vec();
        Ok(())
    }

    fn handle_control(
        &mut self,
        now: Instant,
        message: ControlMessage,
    ) -> Result<(), SessionError> {
        match message {
            ControlMessage::Open { stream, class } => {
                if stream.opener() != Some(self.role.peer()) {
                    return Err(SessionError::StreamNumber(stream));
                }
                // It says the first class: it may come late, when this end has chosen another.
                self.admit_stream(stream)?;
                if self.streams.get(&stream).is_some_and(|stream| !stream.has_class) {
                    self.set_class(stream, class);
                }
            }
            ControlMessage::Reset { stream, code, end } => self.peer_reset(stream, code, end)?,
            ControlMessage::Stop { stream, code } => self.peer_stop(stream, code)?,
            ControlMessage::MaxStreams { count } => {
                if count > self.counts.local_limit {
                    self.counts.local_limit = count;
                    self.events.push_back(Event::StreamsAvailable);
                }
            }
            ControlMessage::Redial { path } => self.peer_redial(now, path)?,
            ControlMessage::RedialCancel { path } => {
                self.client_only("redial cancelled by a client")?;
                self.peer_redial_cancel(path);
            }
        }
        Ok(())
    }

    fn client_only(&self, what: &'static str) -> Result<(), SessionError> {
        if self.role == Role::Client { Ok(()) } else { Err(SessionError::Control(what)) }
    }

    fn peer_redial(&mut self, now: Instant, path: PathId) -> Result<(), SessionError> {
        self.client_only("redial asked by a client")?;
        let floor = self.config.suspect_floor;
        if let Some(path) = self.paths.iter_mut().find(|p| p.id == path) {
            // The server suspects no subflow so soon: it means the one before.
            if path.subflow.as_ref().is_some_and(|s| now.saturating_since(s.since) < floor) {
                return Ok(());
            }
            path.redial_asked = Some(now);
            path.peer_asks = true;
            self.events.push_back(Event::Redial { path: path.id });
        }
        Ok(())
    }

    fn peer_redial_cancel(&mut self, path: PathId) {
        if let Some(path) = self.paths.iter_mut().find(|p| p.id == path) {
            path.peer_asks = false;
            if path.health != Health::Suspect {
                self.events.push_back(Event::RedialCancelled { path: path.id });
            }
        }
    }

    fn peer_reset(&mut self, id: StreamId, code: u32, end: u64) -> Result<(), SessionError> {
        if id == StreamId::CONTROL {
            return Err(SessionError::Control("the control stream was reset"));
        }
        self.admit_stream(id)?;
        let Some(stream) = self.streams.get_mut(&id) else { return Ok(()) };
        let before = stream.receive.highest;
        stream.receive.peer_reset(code, end)?;
        let holes = stream.count_holes();
        let grown = stream.receive.highest - before;
        let untaken = (!stream.receive.is_complete()).then(|| stream.receive.take_rest().0);
        stream.recount(&mut self.memory);
        self.charge_holes(holes)?;
        self.count_received(grown)?;
        if let Some(untaken) = untaken {
            self.consume_credit(untaken);
        }
        self.events.push_back(Event::StreamReset { stream: id, code });
        self.events.push_back(Event::Readable(id));
        self.events.push_back(Event::MessageReadable(id));
        self.reap(id);
        Ok(())
    }

    fn peer_stop(&mut self, id: StreamId, code: u32) -> Result<(), SessionError> {
        if id == StreamId::CONTROL {
            return Err(SessionError::Control("the control stream was stopped"));
        }
        self.admit_stream(id)?;
        if self.give_up(id, SendState::Stopped(code), code) {
            self.events.push_back(Event::StreamStopped { stream: id, code });
            self.events.push_back(Event::Writable(id));
        }
        self.recount(id);
        self.reap(id);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;
    use crate::config::Config;
    use fbdt_units::SubflowSample;
    use fbdt_wire::Limits;

    const PATH: PathId = PathId(0);

    fn at(ms: u64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }

    /// A client with one path, and what it asked its diallers for since the last look.
    struct Client(Session);

    impl Client {
        fn new() -> Self {
            let mut session =
                Session::new(at(0), Role::Client, Config::default(), Limits::default()).unwrap();
            session.subflow_up(at(0), PATH, "a");
            Self(session)
        }

        /// 1000 bytes are in flight, and so many were acknowledged so far.
        fn sample(&mut self, ms: u64, acked_total: u64) {
            let rtt = core::time::Duration::from_millis(5);
            let sample = SubflowSample {
                srtt: rtt,
                min_rtt: rtt,
                cwnd: 50_000,
                delivery_rate: 1_000_000,
                mss: 1448,
                in_flight: 1000,
                acked_total,
                ..SubflowSample::default()
            };
            self.0.handle_sample(at(ms), fbdt_units::SubflowId(0), &sample);
        }

        fn asked(&mut self) -> Vec<bool> {
            core::iter::from_fn(|| self.0.poll_event())
                .filter_map(|event| match event {
                    Event::Redial { .. } => Some(true),
                    Event::RedialCancelled { .. } => Some(false),
                    _ => None,
                })
                .collect()
        }
    }

    #[test]
    fn f9b_what_the_peer_asked_for_only_the_peer_gives_up() {
        let mut client = Client::new();
        client.sample(100, 0);
        client.sample(300, 0);
        assert_eq!(client.asked(), [true], "its own bytes are stuck");
        client.0.peer_redial(at(310), PATH).unwrap();
        assert_eq!(client.asked(), [true]);
        client.sample(320, 1000);
        assert!(client.asked().is_empty(), "the peer's bytes may still be stuck");
        client.0.peer_redial_cancel(PATH);
        assert_eq!(client.asked(), [false]);
    }

    #[test]
    fn f9b_what_this_end_asked_for_it_gives_up_itself() {
        let mut client = Client::new();
        client.sample(100, 0);
        client.sample(300, 0);
        assert_eq!(client.asked(), [true]);
        client.0.peer_redial_cancel(PATH);
        assert!(client.asked().is_empty(), "its own bytes are still stuck");
        client.sample(320, 1000);
        assert_eq!(client.asked(), [false]);
    }

    #[test]
    fn f9b_a_request_that_a_new_subflow_overtook_is_ignored() {
        let mut client = Client::new();
        client.0.peer_redial(at(20), PATH).unwrap();
        assert!(client.asked().is_empty());
        client.0.peer_redial(at(60), PATH).unwrap();
        assert_eq!(client.asked(), [true]);
    }
}
