use unicode_width::UnicodeWidthStr as _;

use toolq_core::text::{cut, paint};

/// Where text is shown.
#[derive(Debug, Clone, Copy)]
pub struct Page {
    /// Columns.
    pub width: usize,
    /// Whether it may have colours.
    pub color: bool,
}

impl Page {
    pub(super) fn bold(&self, text: &str) -> String {
        self.paint(text, "1")
    }

    pub(super) fn dim(&self, text: &str) -> String {
        self.paint(text, "2")
    }

    pub(super) fn paint(&self, text: &str, style: &str) -> String {
        paint(text, style, self.color)
    }

    /// The page without its first `columns` columns.
    pub(super) fn inset(self, columns: usize) -> Self {
        Self {
            width: self.width.saturating_sub(columns),
            ..self
        }
    }

    /// The text in `columns` columns at least, and in no more than the page has.
    pub(super) fn pad(&self, text: &str, columns: usize) -> String {
        let text = cut(text, self.width.max(columns));
        let missing = columns.saturating_sub(text.width());
        format!("{text}{:missing$}", "")
    }

    /// The text in what is left of a line beside `taken` columns.
    pub(super) fn fit(&self, text: &str, taken: usize) -> String {
        cut(text, self.width.saturating_sub(taken).max(NARROWEST)).into_owned()
    }
}

/// Fewer columns say nothing.
const NARROWEST: usize = 20;
