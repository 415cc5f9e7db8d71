//! The width and colors of text output.

use unicode_width::UnicodeWidthStr as _;

use toolq_core::text::{paint, truncate_to_columns, wrap_words};

/// How text is laid out.
#[derive(Debug, Clone, Copy)]
pub struct TextLayout {
    /// Width in columns.
    pub width: usize,
    /// Width of the terminal, if there is one: lines are broken only there.
    pub terminal_width: Option<usize>,
    /// Whether to use colors.
    pub color: bool,
    /// Whether inputs and results are shown whole.
    pub is_whole: bool,
}

impl TextLayout {
    pub(super) fn bold(&self, text: &str) -> String {
        self.paint(text, "1")
    }

    pub(super) fn dim(&self, text: &str) -> String {
        self.paint(text, "2")
    }

    pub(super) fn paint(&self, text: &str, style: &str) -> String {
        paint(text, style, self.color)
    }

    /// Returns a layout that is narrower by `columns`.
    pub(super) fn inset(self, columns: usize) -> Self {
        Self {
            width: self.width.saturating_sub(columns),
            ..self
        }
    }

    /// Pads the text to `min_columns`, or truncates it to the width.
    pub(super) fn pad(&self, text: &str, min_columns: usize) -> String {
        let text = truncate_to_columns(text, self.width.max(min_columns));
        let missing = min_columns.saturating_sub(text.width());
        format!("{text}{:missing$}", "")
    }

    /// Breaks a line between words, so that it fits the terminal. Continuation lines are indented.
    pub(super) fn wrap(&self, line: &str, indent: usize) -> String {
        let columns = self.terminal_width.unwrap_or(usize::MAX);
        wrap_words(line, columns, &" ".repeat(indent))
    }

    /// Returns whether a line of `columns` columns fits the terminal.
    pub(super) fn fits(&self, columns: usize) -> bool {
        self.terminal_width.is_none_or(|width| columns <= width)
    }

    /// Truncates the text to what is left of a line after `used_columns`.
    pub(super) fn truncate(&self, text: &str, used_columns: usize) -> String {
        truncate_to_columns(
            text,
            self.width.saturating_sub(used_columns).max(MIN_COLUMNS),
        )
        .into_owned()
    }
}

/// Text isn't truncated to less than this, or nothing useful would be left.
const MIN_COLUMNS: usize = 20;
