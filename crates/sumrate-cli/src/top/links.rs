//! The table of links.

use ratatui::Frame;
use ratatui::layout::{Constraint, Rect};
use ratatui::style::{Modifier, Style};
use ratatui::widgets::{Block, Cell, Row, Table, TableState};

use super::TopState;
use super::state::Part;
use super::view::{BOLD, DIM, level_colour};
use super::window;
use crate::status::{Level, PathReport, SessionReport, StatusReport, bytes};

/// The column that tells the paths of several sessions apart; there is none where there is one session.
const SESSION: &str = "session";
/// Columns: head, and least width, so that a number that grows moves nothing.
const COLUMNS: [(&str, usize); 9] = [
    ("", 1),
    ("link", 4),
    (SESSION, 8),
    ("down", 7),
    ("up", 7),
    ("RTT", 6),
    ("data", 8),
    ("use", 7),
    ("state", 20),
];
/// Those that a terminal without room for all of them leaves out, the least important one first.
const LEFT_OUT: [&str; 6] = ["use", "data", "RTT", SESSION, "state", "up"];

/// What the table shows of a path, column by column.
type Cells = [String; COLUMNS.len()];

/// Each path with its session, if there is one, and its place there.
pub(super) fn all_paths(
    report: &StatusReport,
) -> impl Iterator<Item = (Option<&SessionReport>, usize, &PathReport)> {
    let idle = (None, report.idle_paths.as_slice());
    let of_sessions =
        report.sessions.iter().map(|session| (Some(session), session.paths.as_slice()));
    of_sessions.chain([idle]).flat_map(|(session, paths)| {
        paths.iter().enumerate().map(move |(place, path)| (session, place, path))
    })
}

/// Draws a row for each path; the selected one stands out.
pub(super) fn draw(frame: &mut Frame<'_>, area: Rect, state: &TopState, report: &StatusReport) {
    let rows: Vec<(usize, Level, Cells)> = all_paths(report)
        .map(|(session, place, path)| {
            let of = session.map_or_else(String::new, SessionReport::label);
            let level = path.state.as_ref().map_or(Level::Idle, |state| state.level);
            (place, level, cells(path, place, of))
        })
        .collect();
    let widths = widths(&rows);
    let hidden: &[&str] = if report.sessions.len() < 2 { &[SESSION] } else { &[] };
    let columns = columns(&widths, usize::from(area.width.saturating_sub(2)), hidden);
    let shown = rows.iter().enumerate().map(|(index, (place, level, cells))| {
        let row = row(cells, (*place, *level), &columns);
        // Only an explanation is of one path.
        let is_selected = index == state.selected && state.part == Part::Why;
        if is_selected { row.style(Style::new().add_modifier(Modifier::REVERSED)) } else { row }
    });
    let constraints = columns.iter().map(|column| {
        let width = u16::try_from(widths[*column]).unwrap_or(u16::MAX);
        let is_last = columns.last() == Some(column);
        if is_last { Constraint::Min(width) } else { Constraint::Length(width) }
    });
    let heads = columns.iter().map(|column| COLUMNS[*column].0);
    let table = Table::new(shown, constraints)
        .header(Row::new(heads).style(DIM))
        .block(Block::bordered().title(" links, Mbit/s "));
    // The selected row is in view where there are more rows than room.
    let mut place = TableState::new().with_selected(state.selected);
    frame.render_stateful_widget(table, area, &mut place);
}

fn cells(path: &PathReport, place: usize, session: String) -> Cells {
    let none = || "-".to_owned();
    let rate = |rate: f64| if rate < 9.95 { format!("{rate:.1}") } else { format!("{rate:.0}") };
    let used = path.quota.as_ref().map_or(path.carried_bytes, |quota| quota.used_bytes);
    let words =
        path.state.as_ref().map_or_else(|| path.health.clone(), |state| state.words.clone());
    let error = path.last_error.as_ref().map(|error| format!(": {}", error.reason));
    [
        window::letter(place).to_string(),
        path.name.clone(),
        session,
        rate(path.down_mbps),
        rate(path.up_mbps),
        if path.rtt_ms > 0.0 { format!("{} ms", rate(path.rtt_ms)) } else { none() },
        bytes(used),
        path.priority.clone(),
        words + &error.unwrap_or_default(),
    ]
}

/// Widths at which nothing is cut, but for what went wrong with a path, which may be long.
fn widths(rows: &[(usize, Level, Cells)]) -> [usize; COLUMNS.len()] {
    std::array::from_fn(|column| {
        let (head, least) = COLUMNS[column];
        let shortest = |text: &str| text.split(": ").next().map_or(0, |text| text.chars().count());
        let cells = rows.iter().map(|(_, _, cells)| shortest(&cells[column]));
        cells.fold(least.max(head.len()), usize::max)
    })
}

/// The columns that a table of this width has room for beside each other; none of those without content.
fn columns(widths: &[usize; COLUMNS.len()], room: usize, hidden: &[&str]) -> Vec<usize> {
    let mut shown: Vec<usize> =
        (0..COLUMNS.len()).filter(|column| !hidden.contains(&COLUMNS[*column].0)).collect();
    for head in LEFT_OUT {
        let needed: usize = shown.iter().map(|column| widths[*column] + 1).sum();
        if needed <= room + 1 {
            break;
        }
        shown.retain(|column| COLUMNS[*column].0 != head);
    }
    shown
}

fn row(cells: &Cells, (place, level): (usize, Level), columns: &[usize]) -> Row<'static> {
    let styled = |column: &usize| {
        let cell = Cell::new(cells[*column].clone());
        match COLUMNS[*column].0 {
            "" => cell.style(Style::new().fg(window::colour(place)).add_modifier(Modifier::BOLD)),
            "state" => cell.style(level_colour(level).map_or(BOLD, |colour| BOLD.fg(colour))),
            _ => cell,
        }
    };
    Row::new(columns.iter().map(styled))
}
