//! Quotes values as words that a person would type into a shell. The words are only for reading, so nothing in them may move
//! a cursor, and all of a value is there.

use std::borrow::Cow;

use crate::text::escape;
use crate::types::{PartialTemplate, Segment};
use redact::Mask;

/// Quotes a partial template as one word. Environment variables are kept by name, in quotes that let a shell expand
/// those and nothing else.
pub(crate) fn quote_template(partial: &PartialTemplate, mask: &Mask) -> String {
    let is_env = |piece: &Segment| matches!(piece, Segment::Env { .. });
    if !partial.0.iter().any(is_env) {
        return quote_word(&mask.apply(&partial.to_string())).into_owned();
    }
    let pieces = partial.0.iter().map(|piece| match piece {
        Segment::Text(text) => escape_double_quoted(&mask.apply(text)),
        Segment::Env { .. } => piece.to_string(),
    });
    format!("\"{}\"", escape(&pieces.collect::<String>()))
}

/// Escapes text for use between double quotes.
fn escape_double_quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len());
    for c in text.chars() {
        if matches!(c, '"' | '$' | '`' | '\\') {
            quoted.push('\\');
        }
        quoted.push(c);
    }
    quoted
}

/// Quotes text as one shell word that means exactly this text.
pub(crate) fn quote_word(text: &str) -> Cow<'_, str> {
    let plain = |c: char| c.is_alphanumeric() || "-_./=:,@%+".contains(c);
    match escape(text) {
        Cow::Owned(_) => {
            let text = text.replace('\\', "\\\\").replace('\'', "\\'");
            Cow::Owned(format!("$'{}'", escape(&text)))
        }
        Cow::Borrowed(text) if !text.is_empty() && text.chars().all(plain) => Cow::Borrowed(text),
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
            assert_eq!(quote_word(text), seen);
        }
        let long = "x".repeat(100_000);
        assert_eq!(quote_word(&long), long);
    }

    /// Variables appear as they do in the file; a shell would expand nothing else.
    #[test]
    fn only_variables_are_left_for_a_shell_to_expand() {
        let variable = |default: Option<&str>| Segment::Env {
            name: "REGION".to_owned(),
            default: default.map(str::to_owned),
        };
        let text = |text: &str| Segment::Text(text.to_owned());
        let partial = PartialTemplate(vec![
            text("$(id) `\"\\"),
            variable(Some("eu")),
            variable(None),
        ]);
        assert_eq!(
            quote_template(&partial, &Mask::default()),
            r#""\$(id) \`\"\\${REGION:-eu}${REGION}""#
        );
        let literal = PartialTemplate(vec![text("$(id)")]);
        assert_eq!(quote_template(&literal, &Mask::default()), "'$(id)'");
    }
}
