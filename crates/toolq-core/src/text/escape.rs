//! Escaping of text from outside.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::path::Path;

/// Escapes text for display. The result is a single line without characters that move the cursor, change colors, change
/// the text direction, or are invisible.
///
/// Escapes are written as in the shell's `$'…'`: `\n`, `\x1b`, `\u202e`, `\U000e0041`. Backslashes are left alone. What a build
/// server would take for a command at the beginning of a line is escaped there, too.
pub fn escape(text: &str) -> Cow<'_, str> {
    let command = find_build_command(text);
    let Some(first) = command.or_else(|| text.find(is_hidden)) else {
        return Cow::Borrowed(text);
    };
    let (clean, rest) = text.split_at(first);
    let mut escaped = String::with_capacity(text.len() + 16);
    escaped.push_str(clean);
    for (at, c) in rest.char_indices() {
        if is_hidden(c) || (at == 0 && command.is_some()) {
            push_escape(&mut escaped, c);
        } else {
            escaped.push(c);
        }
    }
    Cow::Owned(escaped)
}

/// Returns where a command to a build server begins, as `::error::` of GitHub Actions or `##vso[…]` of Azure Pipelines, if the text
/// is one.
fn find_build_command(text: &str) -> Option<usize> {
    let command = text.trim_start();
    let is_bracketed = |rest: &str| {
        rest.trim_start_matches(|c: char| c.is_ascii_alphanumeric())
            .starts_with('[')
    };
    let is_command =
        command.starts_with("::") || command.strip_prefix("##").is_some_and(is_bracketed);
    (is_command && !text[..text.len() - command.len()].contains(is_hidden))
        .then(|| text.len() - command.len())
}

/// Whether `c` is a control character, one that Unicode renders as nothing, a change of direction, or a line break, or one that has
/// no meaning of its own, such as those for private use.
pub fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
            | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{2800}' | '\u{fe00}'..='\u{fe0f}'
            | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{3164}' | '\u{feff}' | '\u{ffa0}'
            | '\u{fff0}'..='\u{fffb}' | '\u{fffe}' | '\u{ffff}' | '\u{13430}'..='\u{1345f}' | '\u{16fe4}' | '\u{1d159}'
            | '\u{e000}'..='\u{f8ff}' | '\u{e0000}'..='\u{e0fff}' | '\u{f0000}'..='\u{10ffff}')
}

fn push_escape(escaped: &mut String, c: char) {
    let code = u32::from(c);
    // Writing to a string cannot fail.
    let _ = match code {
        0x09 => escaped.write_str("\\t"),
        0x0a => escaped.write_str("\\n"),
        0x0d => escaped.write_str("\\r"),
        0..0x80 => write!(escaped, "\\x{code:02x}"),
        0x80..0x1_0000 => write!(escaped, "\\u{code:04x}"),
        _ => write!(escaped, "\\U{code:08x}"),
    };
}

// Decodes the text of files that people write.

/// What some editors begin a file with.
const BYTE_ORDER_MARK: &str = "\u{feff}";

/// Returns the text of a file in UTF-8, without a byte order mark.
///
/// # Errors
/// What isn't UTF-8, and on which line and at which byte of it, both counted from 1.
pub fn decode_text(bytes: Vec<u8>) -> Result<String, String> {
    let mut text = String::from_utf8(bytes).map_err(|error| {
        let before = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let lines: Vec<&[u8]> = before.split(|byte| *byte == b'\n').collect();
        let line = lines.len();
        let column = lines.last().map_or(0, |line| line.len()) + 1;
        format!("line {line} isn't valid UTF-8 (at byte {column} of the line)")
    })?;
    if text.starts_with(BYTE_ORDER_MARK) {
        text.drain(..BYTE_ORDER_MARK.len());
    }
    Ok(text)
}

/// Returns what is wrong with a regular expression, in one line.
pub(crate) fn describe_regex_error(error: &impl ToString) -> String {
    let text = error.to_string();
    let last = text.lines().last().unwrap_or_default();
    last.trim_start_matches("error: ").to_owned()
}

// Words for shells, in commands that people read and copy.

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

    /// Nothing that a tool or a model writes reaches the terminal as a control sequence.
    #[test]
    fn hidden_characters_are_escaped() {
        for (text, seen) in [
            ("plain 中文 text\\n", "plain 中文 text\\n"),
            ("\x1b]52;c;aGk=\x07\r\n\t", r"\x1b]52;c;aGk=\x07\r\n\t"),
            ("\u{9b}31m\u{7f}\0", r"\u009b31m\x7f\x00"),
            (
                "a\u{202e}b\u{2066}c\u{200b}d\u{feff}",
                r"a\u202eb\u2066c\u200bd\ufeff",
            ),
            ("\u{2028}\u{e0041}", r"\u2028\U000e0041"),
            ("\u{13430}\u{1d159}\u{e000}", r"\U00013430\U0001d159\ue000"),
            ("::error::x ::", r"\x3a:error::x ::"),
            (" ##vso[task]", r" \x23#vso[task]"),
            ("\n::x", r"\n::x"),
            ("## Title", "## Title"),
        ] {
            assert_eq!(escape(text), seen);
        }
        assert!(matches!(escape("clean"), Cow::Borrowed(_)));
    }
}

#[cfg(test)]
mod decode_tests {
    use super::*;

    #[test]
    fn a_byte_order_mark_is_no_part_of_the_text() {
        let decoded = |bytes: &[u8]| decode_text(bytes.to_vec());
        assert_eq!(decoded(b"\xef\xbb\xbfa: \xc3\xa9"), Ok("a: é".to_owned()));
        assert_eq!(decoded(b""), Ok(String::new()));
    }

    #[test]
    fn what_is_not_utf_8_is_located() {
        let refused = |bytes: &[u8]| decode_text(bytes.to_vec()).unwrap_err();
        assert!(refused(b"\xff").contains("line 1 isn't valid UTF-8 (at byte 1 "));
        assert!(refused(b"a\nb\n\xc3\xa9\xff").contains("line 3 isn't valid UTF-8 (at byte 3 "));
    }
}

#[cfg(test)]
mod shell_words_tests {
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
