//! Words for POSIX shells, in commands that people can copy.

use std::path::Path;

use crate::text::escape;

/// Quotes a path as one word that no program takes for an option. What a terminal would interpret is escaped.
pub fn quote_path_for_shell(path: &Path) -> String {
    let path = escape(&path.to_string_lossy()).into_owned();
    // A program takes what begins with a dash for options.
    let is_option = path.starts_with('-') && path.len() > 1;
    quote_for_shell(&if is_option { format!("./{path}") } else { path })
}

/// Quotes a text as one word.
pub fn quote_for_shell(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_stays_one_word_and_is_no_option() {
        for (path, word) in [
            ("session.jsonl", "session.jsonl"),
            ("a b.jsonl", "'a b.jsonl'"),
            ("-n", "./-n"),
            ("-a b", "'./-a b'"),
            ("-", "-"),
            ("it's; $(id)", r"'it'\''s; $(id)'"),
            ("\u{1b}[31m", r"'\x1b[31m'"),
        ] {
            assert_eq!(quote_path_for_shell(Path::new(path)), word);
        }
    }
}
