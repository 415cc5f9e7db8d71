//! What a page shows of a call when it is pointed at or has the focus, as JSON for its script.

use maud::{Markup, html};
use serde::Serialize;

use crate::pages::frame::visible_text;

/// What all long texts of a page may take together, in bytes. Each keeps at least its beginning.
const MAX_TEXT_BYTES: usize = 16 << 20;
/// What a long text of a call may always take, in bytes.
const MIN_TEXT_BYTES: usize = 400;
/// What a long text may take where the number of calls isn't known yet, in bytes.
const MAX_SINGLE_TEXT_BYTES: usize = 64 << 10;
/// How much of an input a row has room for, in characters.
const MAX_INPUT_CHARS: usize = 80;

/// The details of a call: rows with a label and a text.
#[derive(Serialize)]
pub(crate) struct CallDetails<'a> {
    /// The state that the filter looks for.
    state: &'a str,
    retried: bool,
    tool: String,
    rows: Vec<(&'static str, String)>,
}

impl<'a> CallDetails<'a> {
    /// Makes the texts visible.
    pub(crate) fn new(tool: &str, state: &'a str, rows: Vec<(&'static str, String)>) -> Self {
        let rows = rows.into_iter();
        Self {
            state,
            retried: false,
            tool: visible_text(tool),
            rows: rows
                .map(|(label, text)| (label, visible_text(&text)))
                .collect(),
        }
    }

    /// Returns how much text it has, in bytes.
    pub(crate) fn text_bytes(&self) -> usize {
        self.rows.iter().map(|(_, text)| text.len()).sum()
    }

    pub(crate) fn retried(self, retried: bool) -> Self {
        Self { retried, ..self }
    }
}

/// Returns the maximum length in bytes of each of the two texts of a call, on a page of `calls` calls.
pub(crate) fn text_limit(calls: usize) -> usize {
    (MAX_TEXT_BYTES / (2 * calls.max(1))).max(MIN_TEXT_BYTES)
}

/// Returns the maximum length in bytes of the next text on a page that already has `bytes` bytes of texts. Unlike
/// [`text_limit`], it doesn't need the number of calls.
pub(crate) fn text_limit_after(bytes: usize) -> usize {
    if bytes < MAX_TEXT_BYTES {
        MAX_SINGLE_TEXT_BYTES
    } else {
        MIN_TEXT_BYTES
    }
}

/// Cuts a text off after `limit` bytes, and says where there is more of it.
pub(crate) fn cut_text(text: &str, limit: usize, more: &str) -> String {
    let end = text.floor_char_boundary(limit);
    if end == text.len() {
        return text.to_owned();
    }
    format!("{}\n… cut; {more}", &text[..end])
}

/// Returns the beginning of an input on one line.
pub(crate) fn input_beginning(input: &str) -> String {
    let mut text: String = input.chars().take(MAX_INPUT_CHARS).collect();
    if text.len() < input.len() {
        text.push('…');
    }
    visible_text(&text).replace(['\n', '\t'], " ")
}

/// Returns the place where the script shows the details. `shown` says what they are.
pub(crate) fn details_panel(shown: &str) -> Markup {
    html! {
        aside #details tabindex="0" aria-label="The call under the pointer or with the focus" {
            p { "Point at a call or move to it with " kbd { "↑" } " and " kbd { "↓" } " to see " (shown) ". " kbd { "F" } " goes to the next call that didn't go well." }
        }
    }
}

// How the row of a call looks, according to its state.

/// The look of a row.
pub(super) struct RowLook {
    /// The class of the row, which decides about its color.
    pub(super) class: &'static str,
    /// A mark that doesn't need a color.
    pub(super) mark: &'static str,
}

impl RowLook {
    pub(super) fn new(class: &'static str, mark: &'static str) -> Self {
        Self { class, mark }
    }
}
