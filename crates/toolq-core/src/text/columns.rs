//! Truncation by terminal width.

use std::borrow::Cow;

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Truncates text to at most `columns` terminal columns. An ellipsis marks the cut. Expects text that is already
/// escaped.
pub fn truncate_to_columns(text: &str, columns: usize) -> Cow<'_, str> {
    if text.width() <= columns {
        return Cow::Borrowed(text);
    }
    let mut width = 0;
    let kept = text.chars().take_while(|c| {
        width += c.width().unwrap_or_default();
        width < columns
    });
    Cow::Owned(kept.chain(['…']).collect())
}

#[cfg(test)]
mod tests {

    use crate::text::columns::truncate_to_columns;

    #[test]
    fn a_text_is_truncated_by_columns() {
        assert_eq!(truncate_to_columns("abc", 3), "abc");
        assert_eq!(truncate_to_columns("abcd", 3), "ab…");
        assert_eq!(truncate_to_columns("政策专家", 8), "政策专家");
        assert_eq!(truncate_to_columns("政策专家", 7), "政策专…");
        assert_eq!(truncate_to_columns("政策专家", 6), "政策…");
    }
}
