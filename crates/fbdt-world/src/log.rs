//! What a session does over time.

use std::fmt::Write as _;
use std::time::Duration;

use fbdt_proto::Config;

use crate::draw::Draw;
use crate::measure::{Session, watch_session};
use crate::stage::{Stage as _, beginning};
use crate::words;

/// Paths are looked at this often.
const EVERY: Duration = Duration::from_millis(100);

/// The draw, each path of the sending end every 100 ms, what came out, and all events of the session.
#[must_use]
pub fn session(draw: &Draw, config: &Config) -> String {
    let mut text = words::draw(draw);
    text.push_str(
        "seconds, then per path: Mbit/s known, kB held / allowed, srtt (min) ms, why idle\n",
    );
    let begins = beginning(draw);
    let mut next = Duration::ZERO;
    let (outcome, events) = watch_session(draw, config, true, |session| {
        if session.elapsed() >= next {
            next = session.elapsed() + EVERY;
            line(&mut text, session.elapsed().saturating_sub(begins), session);
        }
    });
    let _ = writeln!(text, "{}\n", words::outcome(draw.work, &outcome));
    text + &events
}

fn line(text: &mut String, at: Duration, session: &Session) {
    let _ = write!(text, "{:7.2}", at.as_secs_f64());
    for path in &session.sender().paths {
        let _ = write!(
            text,
            " | {} {:.3} Mbit/s {:.1}/{:.1} kB {:.1} ({:.1}) ms {}",
            path.id.0,
            path.rate * 8e-6,
            path.commit as f64 / 1e3,
            path.commit_limit as f64 / 1e3,
            path.srtt.as_secs_f64() * 1e3,
            path.min_rtt.as_secs_f64() * 1e3,
            path.why_idle.name()
        );
    }
    text.push('\n');
}
