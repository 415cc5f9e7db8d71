use std::borrow::Cow;

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// The text in at most `columns` columns of a terminal; what is left out is an ellipsis. It expects an escaped text.
pub fn cut(text: &str, columns: usize) -> Cow<'_, str> {
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

    use crate::text::columns::cut;

    #[test]
    fn a_text_is_cut_by_columns() {
        assert_eq!(cut("abc", 3), "abc");
        assert_eq!(cut("abcd", 3), "ab…");
        assert_eq!(cut("政策专家", 8), "政策专家");
        assert_eq!(cut("政策专家", 7), "政策专…");
        assert_eq!(cut("政策专家", 6), "政策…");
    }
}
