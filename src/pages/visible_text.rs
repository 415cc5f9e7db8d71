//! Text of models and tools, as a page shows it.

use toolq_core::text::escape;

/// Escapes what can't be seen or would change the direction of the text around it. Unlike in a line on the terminal,
/// line breaks and tabs stay.
pub(crate) fn visible_text(text: &str) -> String {
    let mut visible = String::with_capacity(text.len());
    for part in text.split_inclusive(['\n', '\t']) {
        let end = part.trim_end_matches(['\n', '\t']).len();
        let (part, space) = part.split_at(end);
        visible += &escape(part.strip_suffix('\r').unwrap_or(part));
        visible += space;
    }
    visible
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_line_breaks_and_tabs_stay() {
        assert_eq!(visible_text("a\r\n\tb\n\n"), "a\n\tb\n\n");
        assert_eq!(
            visible_text("\u{202e}evil\x1b[2J\u{200b}\n"),
            "\\u202eevil\\x1b[2J\\u200b\n"
        );
    }
}
