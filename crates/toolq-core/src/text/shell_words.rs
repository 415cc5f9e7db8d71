//! Words for shells, in commands that people read and copy.

use std::borrow::Cow;
use std::path::Path;

use crate::text::escape;

/// Quotes a path as one word that no program takes for an option.
pub fn quote_path_for_shell(path: &Path) -> String {
    let path = path.to_string_lossy();
    // A program takes what begins with a dash for options.
    let is_option = path.starts_with('-') && path.len() > 1;
    let path = if is_option {
        format!("./{path}").into()
    } else {
        path
    };
    quote_for_shell(&path).into_owned()
}

/// Quotes a text as one word that means exactly this text. What a terminal would interpret is escaped as in `$'…'`, which
/// all common shells read.
pub fn quote_for_shell(text: &str) -> Cow<'_, str> {
    let is_plain = |c: char| c.is_alphanumeric() || "-_./=:,@%+".contains(c);
    match escape(text) {
        Cow::Owned(_) => {
            let text = text.replace('\\', "\\\\").replace('\'', "\\'");
            Cow::Owned(format!("$'{}'", escape(&text)))
        }
        Cow::Borrowed(text) if !text.is_empty() && text.chars().all(is_plain) => {
            Cow::Borrowed(text)
        }
        Cow::Borrowed(text) => Cow::Owned(format!("'{}'", text.replace('\'', r"'\''"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// People see the real arguments, all of them, and nothing that moves their cursor.
    #[test]
    fn words_are_quoted_and_escaped() {
        for (text, seen) in [
            ("README.md", "README.md"),
            ("", "''"),
            ("a b", "'a b'"),
            ("it's", r"'it'\''s'"),
            ("$(rm -rf /)", "'$(rm -rf /)'"),
            ("中文", "中文"),
            ("a\n\x1b[2J\\'", r"$'a\n\x1b[2J\\\''"),
            ("\u{202e}gpj.exe", r"$'\u202egpj.exe'"),
        ] {
            assert_eq!(quote_for_shell(text), seen);
        }
        let long = "x".repeat(100_000);
        assert_eq!(quote_for_shell(&long), long);
    }

    #[test]
    fn a_path_stays_one_word_and_is_no_option() {
        for (path, word) in [
            ("session.jsonl", "session.jsonl"),
            ("a b.jsonl", "'a b.jsonl'"),
            ("-n", "./-n"),
            ("-a b", "'./-a b'"),
            ("-", "-"),
            ("it's; $(id)", r"'it'\''s; $(id)'"),
            ("\u{1b}[31m", r"$'\x1b[31m'"),
        ] {
            assert_eq!(quote_path_for_shell(Path::new(path)), word);
        }
    }
}
