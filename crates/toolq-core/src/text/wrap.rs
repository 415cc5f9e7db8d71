//! Line breaks between words.

use unicode_width::UnicodeWidthStr;

/// Breaks text into lines of at most `columns` columns, between words. Lines after the first begin with `indent`. A word that is
/// wider than a line, such as a path, stays whole, and so does what stands in backticks: it can be copied and pasted. Expects text
/// that is escaped, and maybe painted.
pub fn wrap_words(text: &str, columns: usize, indent: &str) -> String {
    let mut wrapped = String::with_capacity(text.len());
    let mut used = 0;
    for (index, word) in split_words(text).enumerate() {
        let width = painted_width(word);
        let fits_here = used + 1 + width <= columns;
        let fits_below = indent.width() + width <= columns;
        if index == 0 {
            used = width;
        } else if fits_here || !fits_below {
            wrapped.push(' ');
            used += 1 + width;
        } else {
            wrapped.push('\n');
            wrapped.push_str(indent);
            used = indent.width() + width;
        }
        wrapped.push_str(word);
    }
    wrapped
}

/// Splits a text between words, and in backticks nowhere.
fn split_words(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let text = rest?;
        let end = word_end(text);
        rest = text.get(end + 1..);
        Some(&text[..end])
    })
}

fn word_end(text: &str) -> usize {
    let mut end = 0;
    loop {
        let signs = &text[end..];
        let Some(at) = signs.find([' ', '`']) else {
            return text.len();
        };
        if signs[at..].starts_with(' ') {
            return end + at;
        }
        // Without another one, it is a sign like any other.
        let quoted = signs[at + 1..].find('`').map_or(0, |length| length + 1);
        end += at + 1 + quoted;
    }
}

/// Returns the columns of a word without those of its colors.
fn painted_width(word: &str) -> usize {
    let mut parts = word.split("\x1b[");
    let before = parts.next().map_or(0, UnicodeWidthStr::width);
    let after = parts.map(|part| part.split_once('m').map_or(part, |(_, text)| text).width());
    before + after.sum::<usize>()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::text::paint;

    #[test]
    fn lines_break_between_words() {
        for (text, wrapped) in [
            ("", ""),
            ("now do `a b c`, please", "now do\n  `a b c`,\n  please"),
            ("a lone ` among words", "a lone `\n  among\n  words"),
            ("one two", "one two"),
            ("one two three", "one two\n  three"),
            ("one two three four", "one two\n  three\n  four"),
            ("ab 政策专家 b", "ab\n  政策专家\n  b"),
            (
                "log: /a/long/path/to/it more",
                "log: /a/long/path/to/it\n  more",
            ),
        ] {
            assert_eq!(wrap_words(text, 10, "  "), wrapped, "{text}");
        }
    }

    #[test]
    fn colors_have_no_width() {
        let text = format!("{} two", paint("one", "31;1", true));
        assert_eq!(wrap_words(&text, 7, ""), text);
        assert_eq!(wrap_words(&text, 6, ""), text.replace(' ', "\n"));
    }

    proptest! {
        /// Only spaces are replaced.
        #[test]
        fn no_word_is_lost(text in "[a-z政 ]{0,60}", columns in 0_usize..30) {
            let wrapped = wrap_words(&text, columns, "");
            prop_assert_eq!(wrapped.replace('\n', " "), text);
        }
    }
}
