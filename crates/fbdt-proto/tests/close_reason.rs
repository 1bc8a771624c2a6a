//! Why the peer closed is its own words, which end up before people.
#![allow(missing_docs, clippy::unwrap_used)]

use fbdt_proto::{CloseReason, Config, Frame, Instant, Limits, PathId, Role, Session};

#[test]
fn a_reason_of_the_peer_is_plain_text() {
    let now = Instant::from_nanos(1_000_000_000);
    for (said, shown) in [
        ("\u{1b}]0;owned\u{7}\u{1b}[2J\r\nclosed", " ]0;owned  [2J  closed"),
        ("\u{9b}31m\u{85}", " 31m "),
        ("\u{202e}eman\u{200b}\u{2066}", "\u{fffd}eman\u{fffd}\u{fffd}"),
        ("Zürich is gone", "Zürich is gone"),
    ] {
        for role in [Role::Client, Role::Server] {
            let mut session =
                Session::new(now, role, Config::default(), Limits::default()).unwrap();
            let subflow = session.subflow_up(now, PathId(0), "a");
            let close = Frame::Close { code: 7, reason: said.into() };
            let _ = session.handle_frame(now, subflow, close);
            let expected = CloseReason::Peer { code: 7, reason: shown.into() };
            assert_eq!(session.close_reason(), Some(&expected));
        }
    }
}
