//! What it looks like.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Paragraph, Wrap};

use super::area::{Layer, StackedArea};
use super::links::{self, all_paths};
use super::state::Part;
use super::{TopState, window};
use crate::history::{EventLevel, HistoryReport, PathSeriesReport};
use crate::status::{Level, StatusReport, StreamReport, bytes, lasting};

/// Streams that are listed.
const STREAMS: usize = 5;
/// Width from which on there is a chart for each direction.
const TWO_CHARTS: u16 = 100;
/// Seconds that a chart shows.
const SPAN: usize = 300;

pub(super) const DIM: Style = Style::new().add_modifier(Modifier::DIM);
pub(super) const BOLD: Style = Style::new().add_modifier(Modifier::BOLD);

/// The colour of a level; none for what needs no attention.
pub(super) fn level_colour(level: Level) -> Option<Color> {
    match level {
        Level::Good => Some(Color::Green),
        Level::Degraded => Some(Color::Yellow),
        Level::Down => Some(Color::Red),
        Level::Idle => None,
    }
}

/// Draws everything.
pub fn draw(frame: &mut Frame<'_>, state: &TopState) {
    let paths = state.report.as_ref().map_or(0, |report| all_paths(report).count());
    let paths = u16::try_from(paths).unwrap_or(u16::MAX).min(frame.area().height / 3);
    let [head, chart, table, rest, foot] = Layout::vertical([
        Constraint::Length(2),
        Constraint::Fill(3),
        Constraint::Length(paths + 3),
        Constraint::Fill(2),
        Constraint::Length(1),
    ])
    .areas(frame.area());
    frame.render_widget(heading(state, head.width), head);
    if let Some(report) = &state.report {
        draw_charts(frame, chart, state, report);
        links::draw(frame, table, state, report);
        match state.part {
            Part::Events => draw_events(frame, rest, state.history.as_ref()),
            Part::Why => draw_explanation(frame, rest, state),
            Part::Internals => draw_internals(frame, rest, report),
        }
    }
    let keys = [
        " q quit   ↑ ↓ link   e explain   i internals   p pause".to_owned(),
        " q quit  ↑↓ link  e explain  i internals  p pause".to_owned(),
    ];
    let paused = if state.paused { "   PAUSED" } else { "" };
    let room = foot.width.saturating_sub(9);
    frame.render_widget(Line::styled(format!("{}{paused}", fitting(room, keys)), DIM), foot);
}

/// The headline, and the process.
fn heading(state: &TopState, width: u16) -> Paragraph<'_> {
    let Some(report) = &state.report else {
        let waiting = state.error.clone().unwrap_or_else(|| "waiting for an answer".to_owned());
        return Paragraph::new(waiting);
    };
    let (level, sentence) = match (&state.error, &report.headline) {
        (Some(error), _) => (Level::Down, error.clone()),
        (None, Some(headline)) => (headline.level, headline.sentence.clone()),
        (None, None) => (Level::Idle, "this process is of an earlier version".to_owned()),
    };
    let sign = match level {
        Level::Good => "✓",
        Level::Degraded => "!",
        Level::Down => "✗",
        Level::Idle => "–",
    };
    let sign = Span::styled(sign, level_colour(level).map_or(BOLD, |colour| BOLD.fg(colour)));
    let first = Line::from(vec![sign, Span::styled(format!(" {sentence}"), BOLD)]);
    let proxies = [("SOCKS5", &report.proxies.socks), ("HTTP", &report.proxies.http)];
    let proxies: String = proxies
        .iter()
        .filter_map(|(name, address)| Some(format!(", {name} {}", address.as_ref()?)))
        .collect();
    let (role, version, up) = (&report.role, &report.version, lasting(report.uptime_s));
    let second = fitting(
        width,
        [
            format!("  sumrate {role} {version}, process {}, up for {up}{proxies}", report.pid),
            format!("  sumrate {role} {version}, up for {up}{proxies}"),
            format!("  sumrate {role}{proxies}"),
            format!("  sumrate {role}"),
        ],
    );
    Paragraph::new(vec![first, Line::styled(second, DIM)])
}

/// The last five minutes: both directions where there is room, else the busier one.
fn draw_charts(frame: &mut Frame<'_>, area: Rect, state: &TopState, report: &StatusReport) {
    let Some(history) = &state.history else {
        let text = Line::styled("this process keeps no history: it is of an earlier version", DIM);
        let block = Block::bordered().title(" last 5 minutes ");
        return frame.render_widget(Paragraph::new(text).block(block), area);
    };
    let sum = |rates: &[f64]| rates.iter().sum::<f64>();
    let is_upload = sum(&history.total.up_mbps) > sum(&history.total.down_mbps);
    if area.width < TWO_CHARTS {
        return draw_chart(frame, area, history, report, is_upload);
    }
    let halves = [Constraint::Percentage(50), Constraint::Percentage(50)];
    let [left, right] = Layout::horizontal(halves).areas(area);
    draw_chart(frame, left, history, report, is_upload);
    draw_chart(frame, right, history, report, !is_upload);
}

fn draw_chart(
    frame: &mut Frame<'_>,
    area: Rect,
    history: &HistoryReport,
    report: &StatusReport,
    is_upload: bool,
) {
    let (name, total) = match is_upload {
        true => ("up", &history.total.up_mbps),
        false => ("down", &history.total.down_mbps),
    };
    let (now, most) =
        (total.last().copied().unwrap_or_default(), total.iter().copied().fold(0.0, f64::max));
    let title = fitting(
        area.width.saturating_sub(2),
        [
            format!(" {name}, Mbit/s, last 5 minutes: {now:.1} now, peak {most:.1} "),
            format!(" {name}, Mbit/s: {now:.1} now, peak {most:.1} "),
            format!(" {name} {now:.1} "),
        ],
    );
    let block = Block::bordered().title(title);
    let inner = block.inner(area);
    frame.render_widget(block, area);
    let layers = layers(history, report, is_upload);
    frame.render_widget(StackedArea { layers, most: rounded_up(most), span: SPAN }, inner);
}

/// The layers in the order of the table, those of paths that are gone on top.
fn layers(history: &HistoryReport, report: &StatusReport, is_upload: bool) -> Vec<Layer> {
    let is_server = report.role == "server";
    let place = |series: &PathSeriesReport| {
        let mut paths = all_paths(report);
        let is_same = |session: Option<String>| !is_server || session == series.client;
        let found = paths.find(|(session, _, path)| {
            path.name == series.name && is_same(session.map(|session| session.client_name()))
        });
        found.map(|(_, place, _)| place)
    };
    let mut layers: Vec<(usize, Layer)> = history
        .paths
        .iter()
        .enumerate()
        .map(|(index, series)| {
            let place = place(series).unwrap_or(history.paths.len() + index);
            let rates = if is_upload { &series.up_mbps } else { &series.down_mbps };
            let (name, colour) = (series.name.clone(), window::colour(place));
            (place, Layer { name, colour, rates: rates.clone() })
        })
        .collect();
    layers.sort_by_key(|(place, _)| *place);
    layers.into_iter().map(|(_, layer)| layer).collect()
}

/// The next of 1, 2, 4, 5, 6, 8, 10 times a power of ten.
fn rounded_up(value: f64) -> f64 {
    let value = value.max(1.0);
    let power = 10f64.powf(value.log10().floor());
    let steps = [1.0, 2.0, 4.0, 5.0, 6.0, 8.0, 10.0].map(|step| step * power);
    steps.into_iter().find(|step| *step >= value).unwrap_or(value)
}

fn draw_events(frame: &mut Frame<'_>, area: Rect, history: Option<&HistoryReport>) {
    let room = usize::from(area.height.saturating_sub(2));
    let events = history.map_or(&[][..], |history| &history.events);
    let mut lines: Vec<Line<'_>> = events
        .iter()
        .rev()
        .take(room)
        .map(|event| {
            let (sign, colour) = match event.level {
                EventLevel::Good => ("✓", Color::Green),
                EventLevel::Notice => ("!", Color::Yellow),
                EventLevel::Bad => ("✗", Color::Red),
            };
            let ago = format!("{:>7} ago  ", lasting(event.ago_s));
            let client = event.client.as_ref().filter(|_| event.path.is_some());
            let client = client.map_or_else(String::new, |client| format!("{client}: "));
            Line::from(vec![
                Span::styled(ago, DIM),
                Span::styled(sign, BOLD.fg(colour)),
                Span::raw(format!(" {client}{}", event.words)),
            ])
        })
        .collect();
    if lines.is_empty() {
        lines.push(Line::styled("nothing has happened yet", DIM));
    }
    frame.render_widget(Paragraph::new(lines).block(Block::bordered().title(" events ")), area);
}

fn draw_explanation(frame: &mut Frame<'_>, area: Rect, state: &TopState) {
    let sentences = state.explained.get(state.selected).cloned().unwrap_or_default();
    let lines: Vec<Line<'_>> = sentences.into_iter().map(Line::from).collect();
    let paragraph =
        Paragraph::new(lines).wrap(Wrap { trim: true }).block(Block::bordered().title(" why "));
    frame.render_widget(paragraph, area);
}

/// Windows, the largest streams, and what each link holds.
fn draw_internals(frame: &mut Frame<'_>, area: Rect, report: &StatusReport) {
    let mut lines: Vec<Line<'_>> = all_paths(report)
        .map(|(_, place, path)| {
            let held = bytes(path.commit_bytes);
            let limit = bytes(path.commit_limit_bytes);
            let far = path.far.as_ref().filter(|far| far.why != path.why);
            let far = far.map_or_else(String::new, |far| format!("; other end: {}", far.why));
            Line::from(vec![
                Span::styled(window::letter(place).to_string(), BOLD.fg(window::colour(place))),
                Span::raw(format!(
                    " {}: {held} of {limit} in flight, {}{far}",
                    path.name, path.why
                )),
            ])
        })
        .collect();
    let room = area.width.saturating_sub(2);
    let mut streams: Vec<_> = report.sessions.iter().flat_map(|session| &session.streams).collect();
    streams.sort_by_key(|stream| std::cmp::Reverse(stream.written_bytes + stream.received_bytes));
    let words = |stream: &StreamReport| Line::styled(fitting(room, stream_words(stream)), DIM);
    lines.extend(streams.into_iter().take(STREAMS).map(words));
    for window in report.sessions.iter().flat_map(|session| &session.windows) {
        lines.extend(window::lines(window));
    }
    let title = fitting(
        room,
        [
            " internals; windows: letter = in flight on that link, · unsent, █ arrived, - missing ",
            " internals: letter = in flight there, · unsent, █ arrived, - missing ",
            " internals ",
        ]
        .map(str::to_owned),
    );
    frame.render_widget(Paragraph::new(lines).block(Block::bordered().title(title)), area);
}

/// A stream in more and in fewer words.
fn stream_words(stream: &StreamReport) -> [String; 4] {
    let (id, class, delay) = (stream.id, stream.class_words(), stream.in_order_delay_ms);
    let (written, received) = (bytes(stream.written_bytes), bytes(stream.received_bytes));
    let carried = format!("sent {written}, received {received}");
    let delay = format!("in-order delay p50 {:.1} p99 {:.1} ms", delay.p50, delay.p99);
    let stall = format!("longest stall {:.0} ms", stream.longest_stall_ms);
    [
        format!("stream {id} {class}: {carried}, {delay}, {stall}"),
        format!("stream {id} {class}: {carried}, {stall}"),
        format!("stream {id} {class}: {carried}"),
        format!("stream {id}: {carried}"),
    ]
}

/// The first of several wordings, from the longest on, that there is room for; the last one if none is
/// short enough.
fn fitting<const N: usize>(room: u16, wordings: [String; N]) -> String {
    let fits = |words: &String| words.chars().count() <= usize::from(room);
    let place = wordings.iter().position(fits).unwrap_or(N.saturating_sub(1));
    wordings.into_iter().nth(place).unwrap_or_default()
}

#[cfg(test)]
#[path = "view_tests.rs"]
mod tests;
