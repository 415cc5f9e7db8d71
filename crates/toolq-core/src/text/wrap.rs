//! Line breaks between words.

use std::borrow::Cow;
use std::ops::Range;

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::text::escape::is_hidden;

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

// Truncation by terminal width.

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

// Truncation by characters.

/// Maximum length of a name from outside, in characters.
pub(crate) const MAX_NAME_CHARS: usize = 200;

/// Truncates text to at most `limit` characters, and escapes control characters and characters that
/// can't be seen or change the text direction.
pub fn truncate(text: &str, limit: usize) -> String {
    let mut clipped = String::new();
    for c in text.chars().take(limit) {
        if is_hidden(c) {
            clipped.extend(c.escape_unicode());
        } else {
            clipped.push(c);
        }
    }
    if text.chars().nth(limit).is_some() {
        clipped.push('…');
    }
    clipped
}

// Terminal colors.

/// Applies a terminal style to the text (`1` bold, `2` dim, `31` red, `36` cyan …), unless `color` is false.
pub fn paint(text: &str, style: &str, color: bool) -> String {
    if color {
        format!("\x1b[{style}m{text}\x1b[0m")
    } else {
        text.to_owned()
    }
}

// The lines of a text, as YAML counts them.

/// Returns where a line begins after each line break that ends within `range`. A break is `\n`, `\r\n`, or `\r` alone.
pub fn line_starts(text: &str, range: Range<usize>) -> impl Iterator<Item = usize> {
    let bytes = text.as_bytes();
    let ends_line = move |at: &usize| match bytes.get(*at) {
        Some(b'\n') => true,
        Some(b'\r') => bytes.get(at + 1) != Some(&b'\n'),
        _ => false,
    };
    range.filter(ends_line).map(|at| at + 1)
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

#[cfg(test)]
mod columns_tests {

    use crate::text::wrap::truncate_to_columns;

    #[test]
    fn a_text_is_truncated_by_columns() {
        assert_eq!(truncate_to_columns("abc", 3), "abc");
        assert_eq!(truncate_to_columns("abcd", 3), "ab…");
        assert_eq!(truncate_to_columns("政策专家", 8), "政策专家");
        assert_eq!(truncate_to_columns("政策专家", 7), "政策专…");
        assert_eq!(truncate_to_columns("政策专家", 6), "政策…");
    }
}

#[cfg(test)]
mod line_starts_tests {
    use super::*;

    #[test]
    fn every_kind_of_line_break_begins_a_line() {
        let text = "a\nb\r\nc\rd\r\r\n";
        let found: Vec<usize> = line_starts(text, 0..text.len()).collect();
        assert_eq!(found, [2, 5, 7, 9, 11]);
        let halves = line_starts(text, 0..4).chain(line_starts(text, 4..text.len()));
        assert_eq!(halves.collect::<Vec<_>>(), found, "cut within a break");
    }
}
