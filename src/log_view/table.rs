//! Formats tables with aligned columns.

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
    aligned(title, cells, |cell, padding| format!("{cell}{padding}"))
}

/// Like [`left_aligned`], but aligned to the right.
pub(crate) fn right_aligned(title: &str, cells: Vec<String>) -> Vec<String> {
    aligned(title, cells, |cell, padding| format!("{padding}{cell}"))
}

fn aligned(title: &str, mut cells: Vec<String>, pad: fn(&str, &str) -> String) -> Vec<String> {
    cells.insert(0, title.to_owned());
    let width = cells.iter().map(|cell| cell.width()).max();
    let width = width.unwrap_or_default();
    for cell in &mut cells {
        *cell = pad(cell, &" ".repeat(width - cell.width()));
    }
    cells
}
