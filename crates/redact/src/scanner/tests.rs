//! Secrets in long texts, in texts that arrive in pieces, and in base64 that spans lines. And what is skipped.

use std::sync::Arc;

use super::*;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::mask::{MASKED, Mask, MaskScope, MaskedStream};

fn mask_in_pieces(mask: &Arc<Mask>, text: &str, size: usize) -> String {
    let mut stream = MaskedStream::new(Arc::clone(mask));
    let mut passed = Vec::new();
    for piece in text.as_bytes().chunks(size) {
        stream.push(piece, |bytes| passed.extend_from_slice(bytes));
    }
    stream.finish(|bytes| passed.extend_from_slice(bytes));
    String::from_utf8(passed).unwrap()
}

/// Long texts are searched in bulk, which must miss no escape.
#[test]
fn a_secret_is_found_anywhere_in_a_long_text() {
    let mask = Arc::new(Mask::new(["s3cr3t-value"]));
    let filler = "an innocent text. ".repeat(500);
    for spelled in [
        "s3cr3t-value",
        "%73%33cr3t-value",
        "&#115;3cr3t-value",
        r"\u0073\u0033cr3t-value",
        r"%\u00373\u0033cr3t-value",
        r"&\u0023115;3cr3t-value",
    ] {
        let text = format!("{filler}{spelled}{filler}");
        let masked = format!("{filler}{MASKED}{filler}");
        assert_eq!(mask.apply(&text), masked, "{spelled}");
        for size in [1, 10, 1000] {
            assert_eq!(mask_in_pieces(&mask, &text, size), masked, "{spelled}");
        }
    }
    let mut stream = MaskedStream::new(mask);
    let mut passed = Vec::new();
    for piece in ["so many bytes: s3cr3t-valu", &format!("e{filler}")] {
        stream.push(piece.as_bytes(), |bytes| passed.extend_from_slice(bytes));
    }
    stream.finish(|bytes| passed.extend_from_slice(bytes));
    let masked = format!("so many bytes: {MASKED}{filler}");
    assert_eq!(String::from_utf8(passed).unwrap(), masked);
}

/// Escapes before a secret don't move its mask.
#[test]
fn a_secret_behind_escapes_is_masked_where_it_is() {
    let mask = Mask::new(["s3cr3t-value"]);
    for (text, masked) in [
        (r"a\tb\tc\u0073\u0033cr3t-value\n", r"a\tb\tc[masked]\n"),
        (r"\t\u0073\u0033cr3t-value", r"\t[masked]"),
        ("%41%42%733cr3t-value%41", "%41%42[masked]%41"),
    ] {
        assert_eq!(mask.apply(text), masked);
    }
}

/// Text that could be the start of an escape, such as the final `%`, is decoded at the latest when the text ends.
#[test]
fn a_secret_that_ends_like_an_escape_is_found_at_the_end() {
    let mask = Mask::new(["it's s3cr3t%"]);
    assert_eq!(mask.apply(r"it\u0027s s3cr3t%"), MASKED);
}

fn join_lines(base64: &str, width: usize, line_break: &str) -> String {
    let lines = base64.as_bytes().chunks(width);
    let lines: Vec<&str> = lines.map(|line| str::from_utf8(line).unwrap()).collect();
    lines.join(line_break)
}

/// Writes each character as JSON may.
fn escape_all(text: &str) -> String {
    let escapes: Vec<String> = text.bytes().map(|byte| format!("\\u{byte:04x}")).collect();
    escapes.concat()
}

/// A secret may span several lines, before and after which there is much other text.
#[test]
fn base64_is_found_across_lines() {
    let secret: String = (b'a'..=b'z').cycle().take(150).map(char::from).collect();
    let mask = Arc::new(Mask::new([&*secret]));
    let base64 = STANDARD.encode(format!("\0\0\0{secret}\0\0\0"));
    let filler = "an innocent text. ".repeat(500);
    for line_break in ["\n", "\r\n", r"\n", r"\r\n"] {
        for filler in ["", &filler] {
            let lines = join_lines(&base64, 64, line_break);
            let text = format!("{filler}\n{lines}\n{filler}");
            let masked = format!("{filler}\nAAAA{MASKED}AAAA\n{filler}");
            assert_eq!(mask.apply(&text), masked, "{line_break:?}");
            for size in [1, 10, 1000] {
                assert_eq!(mask_in_pieces(&mask, &text, size), masked, "{line_break:?}");
            }
        }
    }
    let lines = join_lines(&base64, 64, "\n");
    let masked = format!("{}{MASKED}{}", escape_all("AAAA"), escape_all("AAAA"));
    assert_eq!(mask.apply(&escape_all(&lines)), masked);
}

/// In a long file, most lines are base64 that isn't secret.
#[test]
fn base64_is_found_across_lines_of_a_long_file() {
    let mask = Mask::new(["s3cr3t-value"]);
    let around = "\0".repeat(48 * 40 - 6);
    let base64 = STANDARD.encode(format!("{around}s3cr3t-value{around}"));
    let lines = join_lines(&base64, 64, "\n");
    assert_eq!(mask.apply(&lines).matches(MASKED).count(), 1);
}

/// The line break after a line of base64 digits may be part of a secret itself.
#[test]
fn an_escaped_secret_is_found_whose_line_breaks_follow_base64_digits() {
    let digits = "A".repeat(20);
    let mask = Mask::new([&*format!("{digits}\n\t!@~^")]);
    let text = format!(r"{digits}\u000a\u0009!@~^");
    assert_eq!(mask.apply(&text), MASKED);
}

/// Words on lines of their own aren't lines of base64, regardless of what precedes them.
#[test]
fn short_lines_are_not_joined() {
    let mask = Mask::new(["s3cr3t-value"]);
    let base64 = STANDARD.encode("s3cr3t-value");
    for line_break in ["\n", r"\n"] {
        let text = format!("an innocent text. {}", join_lines(&base64, 8, line_break));
        assert_eq!(mask.apply(&text), text);
        assert_eq!(mask.apply(&escape_all(&text)), escape_all(&text));
    }
    assert_eq!(mask.apply(&join_lines(&base64, 16, " ")), MASKED);
    let text = format!("AAAA{}", join_lines(&format!("AAAAAAAA{base64}"), 16, " "));
    assert_eq!(mask.apply(&text), text);
}

fn patterns_of(mask: &Mask) -> &Patterns {
    match &mask.scope {
        MaskScope::Secrets(patterns) => patterns,
        scope => panic!("{scope:?} has no patterns"),
    }
}

/// What comes last may still be the start of a secret.
#[test]
fn a_long_text_is_skipped_up_to_its_last_bytes() {
    let mask = Mask::new(["s3cr3t-value"]);
    let patterns = patterns_of(&mask);
    let longest = patterns.max_pattern_bytes;
    let text = " ".repeat(MIN_SEARCH_FACTOR * longest).into_bytes();
    let (mut scanner, before) = (SecretScanner::new(patterns), b"The text: ");
    scanner.push(patterns, before);
    assert_eq!(scanner.skip_unmatched(patterns, &text[1..]), 0);
    assert_eq!(scanner.searched_until, before.len() + text.len() - 1);
    let skipped = scanner.skip_unmatched(patterns, &text);
    assert_eq!(skipped, text.len() - longest);
    assert_eq!(scanner.searched_until, before.len() + text.len());
    assert_eq!(scanner.position, before.len() + skipped);
    let mut scanner = SecretScanner::new(patterns);
    scanner.push(patterns, &text);
    assert_eq!(scanner.searched_until, text.len());
}

/// JSON is full of escaped quotes.
#[test]
fn text_with_escaped_quotes_is_read_in_all_views_at_once() {
    let mask = Mask::new(["s3cr3t-value"]);
    let patterns = patterns_of(&mask);
    let text = br#"{\"a\": \\\"an innocent text.\\\"}"#;
    let mut scanner = SecretScanner::new(patterns);
    assert_eq!(scanner.read_in_sync(patterns, text), text.len());
}

#[test]
fn bytes_that_begin_neither_a_secret_nor_an_escape_are_skipped() {
    let mask = Mask::new(["s3cr3t-value"]);
    for rest in ["", "s3cr3t", "%41", "&amp;", r"\n"] {
        let text = format!("  {{}}: {rest}");
        let skipped = patterns_of(&mask).skippable_prefix_len(text.as_bytes());
        assert_eq!(skipped, text.len() - rest.len(), "{rest}");
    }
}

/// Unless a secret may begin there.
#[test]
fn a_quote_is_skipped_with_its_backslashes() {
    let (plain, quoted, escaped) = ("s3cr3t-value", "\"s3cr3t\"", r"\s3cr3t");
    for (secret, text, skipped) in [
        (plain, r#"\"a"#, Some(2)),
        (plain, r#"\\\\\\\"a"#, Some(8)),
        (plain, r#"\\\\\\\\"a"#, None),
        (plain, r"\n", None),
        (quoted, r#"\"a"#, None),
        (escaped, r#"\"a"#, None),
    ] {
        let mask = Mask::new([secret]);
        let len = escaped_quote_len(patterns_of(&mask), text.as_bytes());
        assert_eq!(len, skipped, "{secret}: {text}");
    }
}
