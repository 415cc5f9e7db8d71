//! Secrets are found however they are escaped and split, and nothing else is masked.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE};
use proptest::prelude::*;

use crate::mask::{MASKED, Mask, MaskedStream};

/// Returns one of the ways in which JSON may write a character, by `choice`.
fn escape_char(c: char, choice: u8) -> String {
    let short = match c {
        '\n' => "\\n",
        '\t' => "\\t",
        '\r' => "\\r",
        '\u{8}' => "\\b",
        '\u{c}' => "\\f",
        '"' => "\\\"",
        '\\' => "\\\\",
        '/' => "\\/",
        _ => "",
    };
    let mut units = [0; 2];
    let units = c.encode_utf16(&mut units).iter();
    let is_open = !c.is_control() && c != '"' && c != '\\';
    match choice % 4 {
        0 | 1 if is_open => c.to_string(),
        0..3 if !short.is_empty() => short.to_owned(),
        choice => units.fold(String::new(), |text, unit| match choice {
            3 => text + &format!("\\u{unit:04X}"),
            _ => text + &format!("\\u{unit:04x}"),
        }),
    }
}

fn escape_all(text: &str, choices: &[u8]) -> String {
    let choices = choices.iter().cycle();
    text.chars()
        .zip(choices)
        .map(|(c, choice)| escape_char(c, *choice))
        .collect()
}

/// Decodes the inside of a JSON string.
fn parse_json_string(string: &str) -> String {
    serde_json::from_str(&format!("\"{string}\"")).unwrap()
}

fn mask_in_pieces(mask: &Arc<Mask>, text: &[u8], sizes: &[usize]) -> String {
    let mut stream = MaskedStream::new(Arc::clone(mask));
    let (mut passed, mut rest) = (Vec::new(), text);
    for size in sizes.iter().cycle() {
        if rest.is_empty() {
            break;
        }
        let (piece, tail) = rest.split_at((*size).min(rest.len()));
        stream.push(piece, |bytes| passed.extend_from_slice(bytes));
        rest = tail;
    }
    stream.finish(|bytes| passed.extend_from_slice(bytes));
    String::from_utf8(passed).unwrap()
}

fn secret() -> impl Strategy<Value = String> {
    let c = prop_oneof![
        3 => prop::char::range('a', 'z'),
        3 => prop::sample::select(vec!['\\', '"', '/', '&', '<', '%', '+', ' ', '\n', '\t', '\'', '#', ';']),
        2 => prop::sample::select(vec!['u', 'n', '0', '4', 'x', 'é', '€', '😀', '\u{1}']),
    ];
    let middle = prop::collection::vec(c, 4..40);
    let first = prop::sample::select(vec![
        "s", "n", "u", "u00e9", "x41", "\"", "%", "&", "\\", "\\\\\\",
    ]);
    // Whitespace around a value isn't part of it.
    (first, middle)
        .prop_map(|(first, middle)| format!("{first}{}e", String::from_iter(middle)))
        .prop_filter("shorter values are never masked", |secret| {
            secret.len() >= Mask::MIN_SECRET_BYTES
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Escaped or quoted for JSON, URLs, HTML, shells, YAML or CSV, several times over.
    #[test]
    fn no_escape_hides_a_secret(
        secret in secret(),
        levels in 0_usize..3,
        choices in prop::collection::vec(any::<u8>(), 1..60),
        around in prop::sample::select(vec!["", " ", "\"", "key: ", "é", "😀", "\n", "\\", "{\"a\":\""]),
        sizes in prop::collection::vec(1_usize..50, 1..5),
    ) {
        let mut text = format!("{around}{secret}{around}");
        for level in 0..levels {
            text = escape_all(&text, &choices[level % choices.len()..]);
        }
        let mask = Arc::new(Mask::new([&*secret]));
        let masked = mask.apply(&text).into_owned();
        prop_assert_eq!(masked.matches(MASKED).count(), 1, "{} {}", text, masked);
        let mut decoded = masked.clone();
        for _ in 0..levels {
            prop_assert!(!decoded.contains(&secret));
            decoded = parse_json_string(&decoded);
        }
        prop_assert!(!decoded.contains(&secret));
        // An escape or quote character at the edge may be masked with the secret, or not.
        if around != "\\" && !secret.trim_start_matches('\\').starts_with('"') {
            prop_assert_eq!(decoded, format!("{around}{MASKED}{around}"), "{}", text);
        }
        prop_assert_eq!(mask_in_pieces(&mask, text.as_bytes(), &sizes), masked);
    }

    /// Text that only looks like escapes or like the start of a secret stays as it is.
    #[test]
    fn text_without_a_secret_is_unchanged(
        pieces in prop::collection::vec(prop::sample::select(vec![
            "\\", "\\\\\\\\\\", "\\u00", "\\u0041", "\\ud83d", "\\ude00", "\\x4", "\\n", "\n", "\r\n", "\"", "%", "%2", "%2F", "&",
            "&amp", "&amp;", "&#", "&#38", "&#38;", "&#x26;", "s3cr3t", "s3cr3t-", "\\u0073\\u0033cr3t", "c2VjcmV0", "é", "\u{10ffff}", "x", "x…",
        ]), 0..60),
        sizes in prop::collection::vec(1_usize..50, 1..5),
    ) {
        let mask = Arc::new(Mask::new(["s3cr3t-\"välue\"\n&more", "another\\one"]));
        let text = pieces.concat();
        prop_assert_eq!(&*mask.apply(&text), &*text);
        prop_assert_eq!(mask_in_pieces(&mask, text.as_bytes(), &sizes), text);
    }

    /// However a stream is split into pieces, it is masked like the whole text.
    #[test]
    fn pieces_are_masked_like_the_whole(
        words in prop::collection::vec(prop::sample::select(vec![
            "secret", "secrets-2", "sec", " ", "ret", "c2VjcmV0", "xzZWNyZXQ=", "hAc2VjcmV0cy0yCg==", "\n", "\\u0073", "ecret", "\\", "%73", "aaaa", "YWFh", "c2Vj", "cmV0", "AAAAAAAAAAAAAAAAAAAA", "\\\"", "\\n", "\r\n", "&#", "115;", "%", "7", "x",
        ]), 0..16),
        sizes in prop::collection::vec(1_usize..30, 1..5),
    ) {
        let text = words.concat();
        let mask = Arc::new(Mask::new(["secret", "secrets-2", "aaaaaa"]));
        let masked = mask.apply(&text).into_owned();
        prop_assert!(!masked.contains("secret") && !masked.contains("aaaaaa"), "{}", masked);
        prop_assert_eq!(mask_in_pieces(&mask, text.as_bytes(), &sizes), masked);
    }

    /// Base64 is matched across line breaks, as the `base64` program and PEM insert them, also escaped in JSON. A digit
    /// at the end of a line may remain.
    #[test]
    fn base64_lines_are_joined(
        secret in "[a-z0-9]{8,150}",
        before in 0_usize..160,
        after in 0_usize..160,
        width in prop::sample::select(vec![60_usize, 64, 76]),
        end in prop::sample::select(vec!["\n", "\r\n", "\\n", "\\\\r\\\\n"]),
        sizes in prop::collection::vec(1_usize..90, 1..5),
    ) {
        let mask = Arc::new(Mask::new([&*secret]));
        let text = format!("{}{secret}{}", "\0".repeat(before), "\0".repeat(after));
        for alphabet in [STANDARD, URL_SAFE] {
            let encoded = alphabet.encode(&text).into_bytes();
            let lines: Vec<&str> = encoded.chunks(width).map(|line| str::from_utf8(line).unwrap()).collect();
            let lines = lines.join(end);
            let masked = mask.apply(&lines).into_owned();
            prop_assert!(masked.contains(MASKED), "{}", lines);
            let rest = masked.replacen(MASKED, "", 1).replace(end, "").replace('=', "");
            // At the end of a line, a digit that carries some bits of the secret may be left.
            let left = rest.bytes().filter(|digit| *digit != b'A').count();
            prop_assert!(left <= 2, "{} {}", lines, masked);
            prop_assert_eq!(mask_in_pieces(&mask, lines.as_bytes(), &sizes), masked);
        }
    }
}
