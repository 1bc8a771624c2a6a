//! How far a copy is, for people and for programs.

use std::collections::VecDeque;
use std::io::IsTerminal;
use std::time::{Duration, Instant};

use fbdt_proto::plain_text::plain;
use indicatif::{ProgressBar, ProgressStyle};

use super::cp::CpEvent;
use crate::args::CpArgs;
use crate::files::Progress;
use crate::output;
use crate::status::{bytes as amount, lasting};

/// How often progress is printed as JSON.
const LINE: Duration = Duration::from_secs(1);
/// How often it is looked at.
const LOOK: Duration = Duration::from_millis(100);
/// Over how long the rate is taken.
const SPAN: Duration = Duration::from_secs(5);

/// Shows progress until the copy is over.
pub(super) async fn show(args: &CpArgs, progress: &Progress) -> std::convert::Infallible {
    let bar = bar(args);
    let mut last = Instant::now();
    let mut speed = Speed::default();
    loop {
        tokio::time::sleep(LOOK).await;
        let ((files, total_files), (bytes, total_bytes)) = (progress.files(), progress.bytes());
        speed.note(Instant::now(), progress.moved());
        bar.set_length(total_bytes);
        bar.set_position(bytes);
        let left = total_bytes.saturating_sub(bytes);
        bar.set_message(format!(
            "{} of {}  {}  {files} of {total_files} files  {}",
            amount(bytes),
            amount(total_bytes),
            speed.words(left),
            plain(&progress.current())
        ));
        if args.json && last.elapsed() >= LINE {
            last = Instant::now();
            let current = progress.current();
            let event = CpEvent::Progress { files, total_files, bytes, total_bytes, current };
            let _ = output::json(&event.into_line());
        }
    }
}

fn bar(args: &CpArgs) -> ProgressBar {
    if args.json || !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{bar:30} {percent}%  {wide_msg}")
        .unwrap_or_else(|_| ProgressStyle::default_bar());
    ProgressBar::new(0).with_style(style)
}

/// What goes over the connection. What was there before the copy began does not: a copy that goes on
/// where another one was interrupted is no faster for that.
#[derive(Debug, Default)]
struct Speed(VecDeque<(Instant, u64)>);

impl Speed {
    fn note(&mut self, now: Instant, moved: u64) {
        self.0.push_back((now, moved));
        while self.0.len() > 2 && self.0.front().is_some_and(|(at, _)| now - *at > SPAN) {
            self.0.pop_front();
        }
    }

    /// Bytes per second, once some have gone.
    fn rate(&self) -> Option<f64> {
        let ((from, before), (to, after)) = (self.0.front()?, self.0.back()?);
        let seconds = (*to - *from).as_secs_f64();
        (after > before && seconds > 0.0).then(|| (after - before) as f64 / seconds)
    }

    /// The rate, and the time that what is left takes at it.
    fn words(&self, left: u64) -> String {
        let Some(rate) = self.rate() else { return "-".to_owned() };
        format!("{}/s, {} left", amount(rate as u64), lasting(left as f64 / rate))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_is_what_went_over_the_connection_lately() {
        let (start, mut speed) = (Instant::now(), Speed::default());
        assert_eq!(speed.words(1000), "-");
        for tenth in 0..=100 {
            // Two seconds of silence while what is there is looked at, then 4 MB a second.
            let moved = 400_000 * u64::from(tenth - tenth.min(20));
            speed.note(start + LOOK * tenth, moved);
        }
        assert_eq!(speed.words(40_000_000), "4.0 MB/s, 10 s left");
        for tenth in 101..=160 {
            speed.note(start + LOOK * tenth, 32_000_000);
        }
        assert_eq!(speed.words(40_000_000), "-", "nothing goes any more");
    }
}
