//! Cells → columns of a table for people.

use unicode_width::UnicodeWidthStr as _;

use toolq_core::text::{cut, escape, paint};

/// The widest column of names.
const WIDEST_NAME: usize = 40;

/// A name in the first column; none is the row of all.
pub(crate) fn row_name(name: Option<&str>) -> String {
    match name {
        Some("") => "(no name)".to_owned(),
        Some(name) => cut(&escape(name), WIDEST_NAME).into_owned(),
        None => "all".to_owned(),
    }
}

/// The lines of columns that are equally long, the first of them titles. No line break at the end.
pub(crate) fn rows(columns: &[Vec<String>], color: bool) -> String {
    let height = columns.first().map_or(0, Vec::len);
    let rows = (0..height).map(|row| {
        let cells: Vec<&str> = columns.iter().map(|column| column[row].as_str()).collect();
        let line = cells.join("  ");
        match row {
            0 => paint(line.trim_end(), "2", color),
            _ => line.trim_end().to_owned(),
        }
    });
    rows.collect::<Vec<_>>().join("\n")
}

/// The cells below their title, all of one width.
pub(crate) fn left(title: &str, cells: Vec<String>) -> Vec<String> {
    let cells: Vec<String> = std::iter::once(title.to_owned()).chain(cells).collect();
    let width = cells
        .iter()
        .map(|cell| cell.width())
        .max()
        .unwrap_or_default();
    let padded = cells.iter().map(|cell| {
        let missing = width - cell.width();
        format!("{cell}{:missing$}", "")
    });
    padded.collect()
}

/// The same, moved to the right.
pub(crate) fn right(title: &str, cells: &[String]) -> Vec<String> {
    let cells = std::iter::once(title).chain(cells.iter().map(String::as_str));
    let cells: Vec<&str> = cells.collect();
    let width = cells
        .iter()
        .map(|cell| cell.width())
        .max()
        .unwrap_or_default();
    cells.iter().map(|cell| format!("{cell:>width$}")).collect()
}
