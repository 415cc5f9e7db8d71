//! Formats tables with aligned columns.

use serde::Serialize;
use unicode_width::UnicodeWidthStr as _;

use toolq_core::text::{escape, paint, truncate_to_columns};

/// Maximum width of the name column.
const MAX_NAME_COLUMNS: usize = 40;

/// Returns the cell in the first column; `None` is the row for everything together.
pub(crate) fn row_name(name: Option<&str>) -> String {
    match name {
        Some("") => "(no name)".to_owned(),
        Some(name) => truncate_to_columns(&escape(name), MAX_NAME_COLUMNS).into_owned(),
        None => "all".to_owned(),
    }
}

/// Formats a report as one line of JSON.
#[expect(
    clippy::expect_used,
    reason = "serializing strings, numbers and lists can't fail"
)]
pub(crate) fn to_json(report: &impl Serialize) -> String {
    serde_json::to_string(report).expect("strings and numbers have a JSON form")
}

/// Joins columns of equal length into lines. The first cells are titles. There is no trailing newline.
pub(crate) fn render_rows(columns: &[Vec<String>], color: bool) -> String {
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

/// Returns the title and the cells, padded to the same width.
pub(crate) fn left_aligned(title: &str, cells: Vec<String>) -> Vec<String> {
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

/// Like [`left_aligned`], but aligned to the right.
pub(crate) fn right_aligned(title: &str, cells: &[String]) -> Vec<String> {
    let cells = std::iter::once(title).chain(cells.iter().map(String::as_str));
    let cells: Vec<&str> = cells.collect();
    let width = cells
        .iter()
        .map(|cell| cell.width())
        .max()
        .unwrap_or_default();
    cells.iter().map(|cell| format!("{cell:>width$}")).collect()
}
