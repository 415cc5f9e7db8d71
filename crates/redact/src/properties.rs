//! FAULTS 131: secrets are found however they are escaped and cut, and nothing else is.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE};
use proptest::prelude::*;

use crate::mask::{MASKED, Mask};
use crate::stream::MaskedStream;

/// What a writer of JSON may write for a character; `how` chooses.
fn escaped(c: char, how: u8) -> String {
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
    match how % 4 {
        0 | 1 if is_open => c.to_string(),
        0..3 if !short.is_empty() => short.to_owned(),
        how => units.fold(String::new(), |text, unit| match how {
            3 => text + &format!("\\u{unit:04X}"),
            _ => text + &format!("\\u{unit:04x}"),
        }),
    }
}

fn escape_all(text: &str, how: &[u8]) -> String {
    let how = how.iter().cycle();
    text.chars()
        .zip(how)
        .map(|(c, how)| escaped(c, *how))
        .collect()
}

/// What a string of JSON says.
fn said(string: &str) -> String {
    serde_json::from_str(&format!("\"{string}\"")).unwrap()
}

fn streamed(mask: &Arc<Mask>, text: &[u8], sizes: &[usize]) -> String {
    let mut stream = MaskedStream::new(Arc::clone(mask));
    let (mut passed, mut rest) = (Vec::new(), text);
    for size in sizes.iter().cycle() {
        if rest.is_empty() {
            break;
        }
        let (piece, behind) = rest.split_at((*size).min(rest.len()));
        stream.push(piece, |bytes| passed.extend_from_slice(bytes));
        rest = behind;
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
    let middle = prop::collection::vec(c, 8..40);
    let first = prop::sample::select(vec!["s", "n", "u", "u00e9", "x41", "\\", "\"", "%", "&"]);
    // Space around a value is no part of it.
    (first, middle).prop_map(|(first, middle)| format!("{first}{}e", String::from_iter(middle)))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn no_escape_hides_a_secret(
        secret in secret(),
        levels in 0_usize..3,
        how in prop::collection::vec(any::<u8>(), 1..60),
        around in prop::sample::select(vec!["", " ", "\"", "key: ", "é", "😀", "\n", "\\", "{\"a\":\""]),
        sizes in prop::collection::vec(1_usize..50, 1..5),
    ) {
        let mut text = format!("{around}{secret}{around}");
        for level in 0..levels {
            text = escape_all(&text, &how[level % how.len()..]);
        }
        let mask = Arc::new(Mask::new([&*secret]));
        let masked = mask.text(&text).into_owned();
        prop_assert_eq!(masked.matches(MASKED).count(), 1, "{} {}", text, masked);
        let mut read = masked.clone();
        for _ in 0..levels {
            prop_assert!(!read.contains(&secret));
            read = said(&read);
        }
        // Of signs that escape or quote, one at the edge may be left or taken along.
        prop_assert!(!read.contains(&secret));
        if around != "\\" && !secret.starts_with(['\\', '"']) {
            prop_assert_eq!(read, format!("{around}{MASKED}{around}"), "{}", text);
        }
        prop_assert_eq!(streamed(&mask, text.as_bytes(), &sizes), masked);
    }

    /// Neither what looks like escapes nor a begin of a secret is touched where there is no secret.
    #[test]
    fn what_is_no_secret_passes_as_it_is(
        pieces in prop::collection::vec(prop::sample::select(vec![
            "\\", "\\\\\\\\\\", "\\u00", "\\u0041", "\\ud83d", "\\ude00", "\\x4", "\\n", "\n", "\r\n", "\"", "%", "%2", "%2F", "&",
            "&amp", "&amp;", "&#", "&#38", "&#38;", "&#x26;", "s3cr3t", "s3cr3t-", "\\u0073\\u0033cr3t", "c2VjcmV0", "é", "\u{10ffff}", "x", "x…",
        ]), 0..60),
        sizes in prop::collection::vec(1_usize..50, 1..5),
    ) {
        let mask = Arc::new(Mask::new(["s3cr3t-\"välue\"\n&more", "another\\one"]));
        let text = pieces.concat();
        prop_assert_eq!(&*mask.text(&text), &*text);
        prop_assert_eq!(streamed(&mask, text.as_bytes(), &sizes), text);
    }

    /// However a stream is cut into pieces, no piece of a secret gets through.
    #[test]
    fn pieces_are_masked_like_the_whole(
        words in prop::collection::vec(prop::sample::select(vec![
            "secret", "secrets-2", "sec", " ", "ret", "c2VjcmV0", "xzZWNyZXQ=", "hAc2VjcmV0cy0yCg==", "\n", "\\u0073", "ecret", "\\", "%73", "aaaa", "YWFh", "c2Vj", "cmV0", "AAAAAAAAAAAAAAAAAAAA", "\\\"", "\\n", "\r\n", "&#", "115;", "%", "7", "x",
        ]), 0..16),
        sizes in prop::collection::vec(1_usize..30, 1..5),
    ) {
        let text = words.concat();
        let mask = Arc::new(Mask::new(["secret", "secrets-2", "aaaaaa"]));
        let masked = mask.text(&text).into_owned();
        prop_assert!(!masked.contains("secret") && !masked.contains("aaaaaa"), "{}", masked);
        prop_assert_eq!(streamed(&mask, text.as_bytes(), &sizes), masked);
    }

    /// Lines of base64 as `base64` and PEM break them, and as they stand in JSON.
    #[test]
    fn lines_of_base64_are_one_text(
        secret in "[a-z0-9]{8,150}",
        before in 0_usize..160,
        behind in 0_usize..160,
        width in prop::sample::select(vec![60_usize, 64, 76]),
        end in prop::sample::select(vec!["\n", "\r\n", "\\n", "\\\\r\\\\n"]),
        sizes in prop::collection::vec(1_usize..90, 1..5),
    ) {
        let mask = Arc::new(Mask::new([&*secret]));
        let text = format!("{}{secret}{}", "\0".repeat(before), "\0".repeat(behind));
        for alphabet in [STANDARD, URL_SAFE] {
            let encoded = alphabet.encode(&text).into_bytes();
            let lines: Vec<&str> = encoded.chunks(width).map(|line| str::from_utf8(line).unwrap()).collect();
            let lines = lines.join(end);
            let masked = mask.text(&lines).into_owned();
            prop_assert!(masked.contains(MASKED), "{}", lines);
            let rest = masked.replacen(MASKED, "", 1).replace(end, "").replace('=', "");
            // A digit of which the secret has some bits may be left where a line ends.
            let left = rest.bytes().filter(|digit| *digit != b'A').count();
            prop_assert!(left <= 2, "{} {}", lines, masked);
            prop_assert_eq!(streamed(&mask, lines.as_bytes(), &sizes), masked);
        }
    }
}
