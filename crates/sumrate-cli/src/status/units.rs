//! Numbers and columns for people.

use std::io::{self, Write};

pub(crate) fn write_columns(
    out: &mut impl Write,
    head: &[&str],
    rows: &[Vec<String>],
) -> io::Result<()> {
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count());
        cells.chain(head.get(column).map(|cell| cell.len())).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..head.len()).map(width).collect();
    let line = |cells: &[String]| {
        let padded = cells.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}"));
        padded.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    let head: Vec<String> = head.iter().map(|cell| (*cell).to_owned()).collect();
    writeln!(out, "{}", line(&head))?;
    rows.iter().try_for_each(|row| writeln!(out, "{}", line(row)))
}

/// What tells a session from others: its number, and the credential's name where that is known.
pub(crate) fn label(session: &str, credential: Option<&str>) -> String {
    let id = session.get(..8).unwrap_or(session);
    credential.map_or_else(|| id.to_owned(), |name| format!("{id} {name}"))
}

/// A time in the unit that suits it.
pub(crate) fn lasting(seconds: f64) -> String {
    match seconds {
        s if s < 120.0 => format!("{s:.0} s"),
        s if s < 7200.0 => format!("{:.0} min", s / 60.0),
        s => format!("{:.0} h", s / 3600.0),
    }
}

/// Bytes with a decimal unit.
pub(crate) fn bytes(count: u64) -> String {
    let units = [(1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")];
    let count = count as f64;
    match units.iter().find(|(size, _)| count >= *size) {
        Some((size, unit)) => format!("{:.1} {unit}", count / size),
        None => format!("{count} B"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_and_columns() {
        assert_eq!(bytes(0), "0 B");
        assert_eq!(bytes(1_500), "1.5 kB");
        assert_eq!(bytes(2_400_000_000), "2.4 GB");
        assert_eq!([3.4, 119.0, 600.0, 10_000.0].map(lasting), ["3 s", "119 s", "10 min", "3 h"]);
        let mut out = Vec::new();
        let rows =
            [vec!["wifi".to_owned(), "active".to_owned()], vec!["é".to_owned(), "x".to_owned()]];
        write_columns(&mut out, &["path", "health"], &rows).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), "path  health\nwifi  active\né     x\n");
    }
}
