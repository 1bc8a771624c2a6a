//! What each fuzz target does with its bytes. A target panics where something
//! is wrong; `tests/corpus.rs` runs all of them over the kept corpora, and
//! `make fuzz` runs them under libFuzzer.
#![allow(clippy::panic, clippy::unwrap_used, clippy::expect_used)] // this is what finds

use std::path::Path;
use std::time::Duration;

use fbdt_proto::{
    Class, Config, Event, Instant, MessageOptions, PathId, Role, Session, StreamId, SubflowSample,
};
use fbdt_sim::soak::{Plan, run_plan};
use fbdt_wire::handshake::{HandshakeMessage, MAX_LEN};
use fbdt_wire::{ControlMessage, Frame, FrameDecoder, Limits, Outgoing};
pub use sumrate_capture::fuzzing::packet;
pub use sumrate_cli::fuzzing::{config, datagram, dns, files, http, report, service, socks5};

/// One fuzz target.
pub type Target = fn(&[u8]);

/// All of them, by name.
pub const TARGETS: [(&str, Target); 19] = [
    ("frame_decoder", frame_decoder),
    ("control_message", control_message),
    ("handshake", handshake),
    ("session_input", session_input),
    ("operations", operations),
    ("socks5", socks5),
    ("http", http),
    ("service", service),
    ("report", report),
    ("datagram", datagram),
    ("files", files),
    ("copy_receiver", copy_receiver),
    ("config", config),
    ("state", state),
    ("dns", dns),
    ("packet", packet),
    ("join_link", join_link),
    ("trace", trace),
    ("link_config", link_config),
];

const MAX_DATA: u32 = 4096;

fn frames(data: &[u8], step: usize) -> (Vec<Frame>, bool) {
    let mut decoder = FrameDecoder::new(MAX_DATA);
    let mut frames = Vec::new();
    for mut piece in data.chunks(step.max(1)) {
        loop {
            match decoder.push(&mut piece) {
                Ok(Some(frame)) => frames.push(frame),
                Ok(None) if piece.is_empty() => break,
                Ok(None) => {}
                Err(_) => return (frames, true),
            }
        }
    }
    (frames, false)
}

/// A subflow's bytes: the same frames in whatever pieces they come, and each
/// frame survives its own encoding.
pub fn frame_decoder(data: &[u8]) {
    let Some((&step, data)) = data.split_first() else { return };
    let (whole, failed) = frames(data, data.len());
    assert_eq!((&whole, failed), (&frames(data, usize::from(step)).0, failed));
    for frame in whole {
        let mut encoded = Vec::new();
        frame.encode(&mut encoded);
        assert_eq!(frames(&encoded, encoded.len()), (vec![frame], false));
    }
}

/// Messages on the control stream.
pub fn control_message(data: &[u8]) {
    let mut rest = data;
    while let Ok(Some((message, size))) = ControlMessage::decode(rest) {
        assert!(size > 0 && size <= rest.len());
        let mut encoded = Vec::new();
        message.encode(&mut encoded);
        assert_eq!(ControlMessage::decode(&encoded), Ok(Some((message, encoded.len()))));
        rest = &rest[size..];
    }
}

/// The first bytes of a stranger.
pub fn handshake(data: &[u8]) {
    let Ok(Some((message, size))) = HandshakeMessage::decode(data) else { return };
    assert!(size <= data.len() && size <= MAX_LEN);
    assert_eq!(HandshakeMessage::decode(&data[..size - 1]), Ok(None), "a prefix waits");
    let mut encoded = Vec::new();
    message.encode(&mut encoded);
    assert_eq!(HandshakeMessage::decode(&encoded), Ok(Some((message, encoded.len()))));
}

/// Sends everything that the session has to say.
fn drain(session: &mut Session, now: Instant, subflows: &[fbdt_proto::SubflowId]) {
    let mut out = Outgoing::default();
    for subflow in subflows {
        let mut count = 0;
        while session.poll_transmit(now, *subflow, &mut out) {
            count += 1;
            assert!(count < 10_000, "one subflow never has enough");
        }
    }
}

/// A peer that sends whatever it likes, frame by frame, to a session with an
/// application that reads and writes: no panic, and no more memory than was
/// advertised.
pub fn session_input(data: &[u8]) {
    let Some((&how, data)) = data.split_first() else { return };
    let role = if how & 1 == 0 { Role::Client } else { Role::Server };
    let limits = Limits {
        max_frame: MAX_DATA,
        stream_window: 16 << 10,
        session_window: 64 << 10,
        max_streams: 8,
    };
    let config = Config { limits, max_stream_window: 64 << 10, ..Config::default() };
    let mut now = Instant::from_nanos(1_000_000_000);
    let session = Session::new(now, role, config, limits).expect("a valid configuration");
    let mut session = session.with_messages();
    let subflows = [0, 1].map(|path| session.subflow_up(now, PathId(path), "path"));
    let sample = SubflowSample {
        srtt: Duration::from_millis(4),
        min_rtt: Duration::from_millis(4),
        cwnd: 1 << 20,
        mss: 1448,
        delivery_rate: 10_000_000,
        ..SubflowSample::default()
    };
    for class in Class::ALL {
        if let Ok(id) = session.open_stream(now, class) {
            let _ = session.write(now, id, &[7; 5000]);
            let _ = session.send_message(now, id, vec![8; 300].into(), MessageOptions::default());
        }
    }
    let reading = how & 2 == 0;
    let (found, _) = frames(data, data.len());
    for (frame, subflow) in found.into_iter().zip(subflows.iter().cycle()) {
        now = now + Duration::from_millis(u64::from(how >> 2));
        session.handle_sample(now, *subflow, &sample);
        let ended = session.handle_frame(now, *subflow, frame).is_err();
        assert!(!ended || session.is_closed(), "a refusal closes the session");
        session.handle_timeout(now);
        drain(&mut session, now, &subflows);
        while let Some(event) = session.poll_event() {
            if let Event::StreamOpened(id) | Event::Readable(id) | Event::MessageReadable(id) =
                event
                && reading
            {
                while let Ok(Some(_)) = session.read(now, id, usize::MAX) {}
                while session.read_message(now, id).is_ok() {}
            }
        }
        // Beside the window: the control stream's own and what pieces cost.
        assert!(session.receive_memory() <= limits.session_window + (1 << 20));
    }
    for id in 0..20 {
        session.release_stream(now, StreamId(id));
    }
    drain(&mut session, now, &subflows);
}

/// Any sequence of work and faults, as a plan that the bytes choose.
pub fn operations(data: &[u8]) {
    let plan = Plan::of_bytes(data);
    let outcome = run_plan(&plan, false).expect("a plan that exists");
    if let Some(violation) = outcome.violation {
        panic!("{violation}: {}", serde_json::to_string(&plan).unwrap_or_default());
    }
}

/// A join link, as somebody pastes it.
pub fn join_link(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let Ok(link) = text.parse::<fbdt::Link>() else { return };
    let written = link.to_string_with_secret();
    let again: fbdt::Link = written.parse().expect("a written link can be read");
    assert_eq!(again.to_string_with_secret(), written);
    let shown = format!("{link} {link:?}");
    let secret = written.rsplit_once('&').map_or("", |(_, secret)| secret);
    assert!(!shown.contains(secret), "a shown link hides its secret");
}

/// Messages of a hostile server to a client that copies from it.
pub fn copy_receiver(data: &[u8]) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    sumrate_cli::fuzzing::copy_receiver(data, directory.path());
}

/// A file of a state directory; the first byte says which.
pub fn state(data: &[u8]) {
    const FILES: [Target; 6] = [
        fbdt::fuzzing::credential,
        fbdt::fuzzing::usage,
        fbdt::fuzzing::version,
        fbdt::fuzzing::server_key,
        sumrate_cli::fuzzing::path_usage,
        sumrate_cli::fuzzing::allow_rule,
    ];
    let Some((&file, content)) = data.split_first() else { return };
    FILES[usize::from(file.wrapping_sub(b'0')) % FILES.len()](content);
}

/// Link traces in both formats.
pub fn trace(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    if let Ok(trace) = sumrate_link::trace::native::parse(text) {
        let written = sumrate_link::trace::native::write(&trace, "again");
        assert!(sumrate_link::trace::native::parse(&written).is_ok(), "{written}");
    }
    let _ = sumrate_link::trace::mahimahi::parse(text);
}

/// The emulator's configuration.
pub fn link_config(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let _ = sumrate_link::config::Config::parse(text, Path::new("/nonexistent/links.toml"));
}
