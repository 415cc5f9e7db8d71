//! Edits to the text of a JSON value. Every byte that isn't edited is kept.

use std::ops::Range;

use crate::json::value::JsonText;

/// Replacements and insertions in one text, collected in text order.
#[derive(Debug)]
pub(crate) struct JsonEdits<'t> {
    text: &'t str,
    edits: Vec<JsonEdit>,
}

/// New text for a range of bytes.
#[derive(Debug)]
struct JsonEdit {
    range: Range<usize>,
    replacement: String,
}

impl<'t> JsonEdits<'t> {
    /// Starts to edit `text`.
    pub(crate) fn new(text: &'t str) -> Self {
        Self {
            text,
            edits: Vec::new(),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.edits.is_empty()
    }

    /// Replaces `value`, which must be a part of the text, after all edits so far.
    pub(crate) fn replace(&mut self, value: JsonText<'t>, replacement: String) {
        let range = self.range_of(value);
        self.edits.push(JsonEdit { range, replacement });
    }

    /// Inserts text before the last byte of `value`, its closing bracket.
    pub(crate) fn insert_at_end(&mut self, value: JsonText<'t>, replacement: String) {
        let end = self.range_of(value).end - 1;
        self.edits.push(JsonEdit {
            range: end..end,
            replacement,
        });
    }

    /// Returns the edited text.
    pub(crate) fn apply(self) -> String {
        let mut edited = String::with_capacity(self.text.len());
        let mut copied_up_to = 0;
        for edit in self.edits {
            edited.push_str(&self.text[copied_up_to..edit.range.start]);
            edited.push_str(&edit.replacement);
            copied_up_to = edit.range.end;
        }
        edited.push_str(&self.text[copied_up_to..]);
        edited
    }

    /// Returns the bytes of the text that `value` borrows.
    fn range_of(&self, value: JsonText<'t>) -> Range<usize> {
        let start = value.get().as_ptr() as usize - self.text.as_ptr() as usize;
        start..start + value.get().len()
    }
}
