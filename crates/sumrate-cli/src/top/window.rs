//! A window as it closes: a letter a part, in the path's colour.

use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};

use crate::status::{WindowReport, bytes};

/// Colours that people with any colour vision can tell apart (Okabe and Ito), of the 256 that
/// terminals have; letters say the same without them.
const COLOURS: [u8; 7] = [32, 214, 36, 175, 166, 104, 143];

/// The colour of the session's path at this place.
pub(super) fn colour(place: usize) -> Color {
    Color::Indexed(COLOURS[place % COLOURS.len()])
}

/// The letter of the session's path at this place.
pub(super) fn letter(place: usize) -> char {
    char::from(b'A' + (place % 26) as u8)
}

/// What the window is, and its parts.
pub(super) fn lines(window: &WindowReport) -> [Line<'static>; 2] {
    let what = if window.sending { "sending" } else { "receiving" };
    let title = format!(
        "stream {}, {what}: {} from byte {} on",
        window.stream,
        bytes(window.to.saturating_sub(window.from)),
        window.from
    );
    let cells = window.cells.chars().map(cell).collect::<Vec<_>>();
    [Line::from(title), Line::from(cells)]
}

fn cell(cell: char) -> Span<'static> {
    match cell {
        '.' => Span::styled("·", Style::new().add_modifier(Modifier::DIM)),
        '=' => Span::raw("█"),
        '-' => Span::styled("-", Style::new().add_modifier(Modifier::DIM)),
        letter => {
            let place = (letter as usize).saturating_sub('A' as usize);
            let style = Style::new().fg(Color::Black).bg(colour(place));
            Span::styled(letter.to_string(), style)
        }
    }
}
