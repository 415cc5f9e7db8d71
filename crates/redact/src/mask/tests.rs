//! Tests each spelling of a secret, one by one.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use url::form_urlencoded::byte_serialize;

use std::sync::Arc;

use super::*;
use crate::mask::MaskedStream;

/// Escaped or quoted for JSON, URLs, HTML, shells, YAML or CSV, several times over.
#[test]
fn every_spelling_is_masked() {
    let secret = "s3cr3t/-with \"quotes\"+é";
    let mask = Mask::new([secret, "short"]);
    let spellings = [
        secret.to_owned(),
        serde_json::to_string(secret).unwrap(),
        utf8_percent_encode(secret, NON_ALPHANUMERIC).to_string(),
        utf8_percent_encode(secret, NON_ALPHANUMERIC)
            .to_string()
            .to_lowercase(),
        byte_serialize(secret.as_bytes()).collect(),
        "s3cr3t%2F-with%20%22quotes%22%2B%C3%A9".to_owned(),
        "s3cr3t/-with%20%22quotes%22%2b%c3%a9".to_owned(),
        r#"s3cr3t\/-with \"quotes\"+é"#.to_owned(),
        r#"s3cr3t/-with \"quotes\"+\u00e9"#.to_owned(),
        r#"s3cr3t/-with \"quotes\"+\u00E9"#.to_owned(),
    ];
    for text in spellings {
        let text = format!("before {text} after");
        let masked = mask.apply(&text);
        assert!(masked.contains(MASKED), "{text}");
        assert!(masked.starts_with("before ") && masked.ends_with(" after"));
    }
    assert_eq!(mask.apply("a short word"), "a short word");
    assert_eq!(Mask::default().apply("s3cr3t"), "s3cr3t");
}

/// A secret of which little is left without its backslashes is found at every level of escaping, even where the backslash
/// itself is written as a code.
#[test]
fn a_short_secret_with_a_backslash_is_masked_however_often_it_is_escaped() {
    for secret in ["&_\\RRu", "\\\\\\\\\\e", "&#38;ab"] {
        let mask = Mask::new([secret]);
        let json = |text: &str| serde_json::to_string(text).unwrap();
        let mut text = secret.to_owned();
        for _ in 0..4 {
            assert_eq!(mask.apply(&text).matches(MASKED).count(), 1, "{text}");
            assert!(!mask.apply(&text).contains("RRu"), "{text}");
            text = json(&text);
        }
        let coded = json(&secret.replace('\\', "\\u005c").replace('&', "\\u0026"));
        assert!(mask.apply(&coded).contains(MASKED), "{coded}");
    }
    let mask = Mask::new(["&_\\RRu"]);
    for innocent in ["&_RRu", "&amp;_RR", "_\\RRu"] {
        assert_eq!(mask.apply(innocent), innocent);
    }
}

/// Little is left of a secret that is mostly an escape.
#[test]
fn what_little_a_secret_decodes_to_is_masked_only_if_it_is_written_as_long_as_the_secret() {
    let mask = Mask::new(["&#38;ab"]);
    for innocent in ["&ab", "an innocent &ab", "%26ab"] {
        assert_eq!(mask.apply(innocent), innocent);
    }
    assert_eq!(mask.apply("some &amp;ab"), "some [masked]");
}

#[test]
fn the_backslashes_that_a_secret_begins_with_are_masked() {
    let mask = Mask::new(["\\\\share"]);
    for text in ["\\\\share", "\\\\\\\\share", "\\\\\\\\\\\\\\\\share"] {
        assert_eq!(mask.apply(&format!("a {text} b")), format!("a {MASKED} b"));
    }
}

/// Escapes and quotes of JSON, URLs, HTML, shells, YAML and CSV, alone and combined.
#[test]
fn escaped_and_quoted_secrets_are_masked() {
    let secret = "it's \"p4ss\"&<w/ürd>\\n+1\n-END-";
    let mask = Mask::new([secret]);
    let json = |text: &str| serde_json::to_string(text).unwrap();
    let html = secret
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;");
    let go = json(secret)
        .replace('&', r"\u0026")
        .replace('<', r"\u003c")
        .replace('>', r"\u003e");
    let percent = utf8_percent_encode(secret, NON_ALPHANUMERIC).to_string();
    for spelled in [
        go.clone(),
        json(&json(secret)),
        json(&json(&json(secret))),
        json(&json(&json(&json(secret)))),
        json(&go),
        json(secret).replace('/', r"\/").replace('ü', r"\u00fc"),
        json(secret).replace("it", r"\u0069\u0074"),
        html.clone(),
        html.replace('\'', "&#39;").replace('"', "&quot;"),
        html.replace('\'', "&apos;").replace('"', "&#x22;"),
        html.replace('ü', "&#252;"),
        json(&html),
        percent.replace("%C3", "%c3").replace("%2F", "/"),
        percent.replace("%20", "+").replace("%2B", "%2b"),
        json(&percent),
        format!("'{}'", secret.replace('\'', r"'\''")),
        format!("'{}'", secret.replace('\'', r#"'"'"'"#)),
        format!("'{}'", secret.replace('\'', "''")),
        format!("\"{}\"", secret.replace('"', "\"\"")),
        json(&format!("'{}'", secret.replace('\'', r"'\''"))),
        format!("{secret:?}"),
        secret.escape_default().to_string(),
    ] {
        let masked = mask.apply(&spelled).into_owned();
        assert!(masked.contains(MASKED), "{spelled}");
        assert!(
            masked.trim_matches(['"', '\'', '\\']) == MASKED,
            "{spelled} {masked}"
        );
    }
}

/// All base64 digits that carry a bit of the secret are masked, and no others, at any offset and in any alphabet.
#[test]
fn base64_is_masked_without_a_remainder() {
    for secret in [
        "s3cr3t-0",
        "s3cr3t-01",
        "s3cr3t-012",
        "s3cr3t\u{3ff}\u{7ff}>>>",
    ] {
        let mask = Mask::new([secret]);
        for (before, after) in (0..12).map(|n| (n % 4, n / 4)) {
            let (before, after) = ("\0".repeat(before), "\0".repeat(after));
            let text = format!("{before}{secret}{after}");
            for alphabet in [STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD] {
                let encoded = alphabet.encode(&text);
                let masked = mask.apply(&encoded).into_owned();
                let rest = masked.replacen(MASKED, "", 1);
                assert!(masked.contains(MASKED), "{encoded}");
                assert!(
                    rest.trim_end_matches('=').bytes().all(|c| c == b'A'),
                    "{masked}"
                );
                assert!(!masked.contains("]="), "{masked}");
                let in_url = utf8_percent_encode(&encoded, NON_ALPHANUMERIC).to_string();
                let masked = mask.apply(&in_url).replacen(MASKED, "", 1);
                assert!(masked.len() < in_url.len(), "{in_url}");
                let rest = masked.replace("%3D", "");
                assert!(rest.bytes().all(|c| c == b'A'), "{in_url} {masked}");
            }
        }
    }
}

/// A text that was truncated in the middle of a secret doesn't leak its first half.
#[test]
fn a_truncated_secret_is_masked() {
    let mask = Mask::new(["s3cr3t-välue"]);
    for truncated in ["s3cr3t…", "s3cr3t-vä…", "s3cr3t-välu…"] {
        assert_eq!(mask.apply(&format!("a {truncated} b")), "a [masked] b");
    }
    assert_eq!(mask.apply("s3cr…"), "s3cr…");
    assert_eq!(mask.apply("s3cr3t or …"), "s3cr3t or …");
}

/// JSON may escape any character.
#[test]
fn json_escapes_hide_no_secret() {
    let mask = Mask::new(["s3cr3t-value"]);
    let json = r#"{"a\"":"\u0073\u0033cr3t-value\n","b":["\\","s3cr3t-value"],"n":1.00}"#;
    let masked = r#"{"a\"":"[masked]\n","b":["\\","[masked]"],"n":1.00}"#;
    assert_eq!(mask.apply_to_json(json), masked);
    let innocent = r#"{"a":"\u0041\n"}"#;
    assert!(matches!(mask.apply_to_json(innocent), Cow::Borrowed(_)));
}

/// A variable may end in a newline that its users trim.
#[test]
fn whitespace_around_a_value_is_ignored() {
    let mask = Mask::new(["s3cr3t-value\n"]);
    assert_eq!(mask.apply("<s3cr3t-value>"), "<[masked]>");
}

/// Masking a secret that is a number doesn't produce invalid JSON.
#[test]
fn masked_json_is_json() {
    let mask = Mask::new(["123456"]);
    assert_eq!(
        mask.apply_to_json(r#"{"a":"x123456"}"#),
        r#"{"a":"x[masked]"}"#
    );
    assert_eq!(mask.apply_to_json(r#"{"a":123456}"#), r#"{"a":"[masked]"}"#);
    assert_eq!(mask.apply_to_json(r#"{"a":1}"#), r#"{"a":1}"#);
}

/// No part of a secret that is still arriving is shown, however it is escaped.
#[test]
fn the_start_of_a_secret_is_held_back() {
    let mask = Mask::new(["s3cr3t-é\"x", "hunter22"]);
    for (text, shown) in [
        (r#"{"a":"the s3cr3"#, r#"{"a":"the "#),
        (r#"{"a":"the s3cr3t-\u00e9\"#, r#"{"a":"the "#),
        (r#"{"a":"the \u0073\u0033c"#, r#"{"a":"the "#),
        (r#"{"a":"the \u0073\u0033"#, r#"{"a":"the "#),
        (r#"{"a":"b","c":"\t hu"#, r#"{"a":"b","c":"\t "#),
        (r#"{"a":"b","c":" hut"#, r#"{"a":"b","c":" hu"#),
        (r#"{"a":"hu","c":1"#, r#"{"a":"hu","c":"#),
        (r#"{"a":"b\'"#, r#"{"a":"b\'"#),
        // A whole secret is masked; without its last character, it wouldn't be.
        (r#"{"a":"hunter22h"#, r#"{"a":"hunter22"#),
        ("hunter22 is the first.", "hunter22 is the first."),
        ("", ""),
    ] {
        assert_eq!(&text[..mask.safe_prefix_len(text)], shown, "{text}");
    }
    let text = r#"{"a":"the s3cr3"#;
    assert_eq!(Mask::default().safe_prefix_len(text), text.len());
}

/// The end of a secret that may be the start of another one isn't certain yet.
#[test]
fn a_secret_is_held_back_while_another_may_begin_in_it() {
    let mask = Mask::new(["abcdef", "defghi"]);
    assert_eq!(mask.safe_prefix_len("abcdef"), 0);
    assert_eq!(mask.safe_prefix_len("abcdef."), 7);
}

/// The base64 of a repetitive secret may begin in another one, which the prefix then must not cut.
#[test]
fn a_prefix_ends_in_none_of_several_overlapping_secrets() {
    let mask = Mask::new(["aaaaaaab"]);
    let text = "oK/CfmIoWFhYWFhYWFhYWFnullhYWFhYWFhYYWFhYWFhYWFhY\n";
    for end in 0..=text.len() {
        let prefix = &text[..mask.safe_prefix_len(&text[..end])];
        let masked = mask.apply(text);
        assert!(masked.starts_with(&*mask.apply(prefix)), "{prefix}");
    }
}

/// No prefix that may be shown contains more than one character of a secret.
#[test]
fn no_safe_prefix_shows_part_of_a_secret() {
    let mask = Mask::new(["s3cr3t-value"]);
    let text = r#"{"a":"= s3cr3t-value =","b":"\u003d \u0073\u0033cr3t-value"}"#;
    for cut in 0..text.len() {
        let shown = &text[..cut];
        let shown = &shown[..mask.safe_prefix_len(shown)];
        let masked = mask.apply_to_json(shown);
        assert!(!masked.contains("s3"), "{masked}");
        assert!(!masked.contains("0073"), "{masked}");
    }
}

/// A key of several lines, as programs print it: indented, with other line ends, prefixed, or on one line.
#[test]
fn a_secret_of_several_lines_is_masked_however_its_lines_are_laid_out() {
    let line = |seed: u16| -> String {
        let chars = (0..64).map(|at| {
            char::from(b"ABCDEFGHIJKLMNOPQRSTUVWXYZ"[usize::from((at * 7 + seed * 3) % 26)])
        });
        chars.collect()
    };
    let body = [line(1), line(2), "MIIEpTail".to_owned(), "Qx4=".to_owned()];
    let pem = |separator: &str| {
        let lines = [&["-----BEGIN KEY-----".to_owned()], &body[..]].concat();
        lines.join(separator) + separator + "-----END KEY-----"
    };
    for value in [pem("\n") + "\n", pem("\r\n"), pem("\\n")] {
        let mask = Mask::new([&*value]);
        for text in [
            pem("\n"),
            pem("\r\n"),
            pem("\\n"),
            pem("\n    "),
            pem("\n> "),
            pem(""),
            pem(" "),
            body.concat(),
            body.join(" "),
            serde_json::to_string(&pem("\n")).unwrap(),
            serde_json::to_string(&pem("\r\n")).unwrap(),
        ] {
            let masked = mask.apply(&text);
            assert!(masked.contains(MASKED), "{text}");
            for part in &body[..3] {
                assert!(
                    !masked.contains(part),
                    "{value:?}: {text:?} became {masked:?}"
                );
            }
        }
        assert_eq!(
            mask.apply("-----BEGIN KEY-----, and so on"),
            "-----BEGIN KEY-----, and so on"
        );
    }
}

#[test]
fn each_of_two_lines_is_masked() {
    let mask = Mask::new(["the-first-line\nthe-second-line"]);
    assert_eq!(mask.apply("the-second-line"), MASKED);
    assert_eq!(
        mask.apply("> the-first-line\n> the-second-line"),
        "> [masked]\n> [masked]"
    );
}

#[test]
fn debug_output_has_no_secret() {
    let shown = format!("{:?}", Mask::new(["s3cr3t-value"]));
    assert_eq!(shown, "Mask { scope: Secrets(Patterns { .. }) }");
}

/// Lines of a few letters occur in innocent text.
#[test]
fn short_lines_of_a_secret_are_not_masked_by_themselves() {
    let mask = Mask::new(["{\n  \"k\": 1,\n  \"p\": \"long-enough\"\n}"]);
    assert_eq!(mask.apply("{ \"k\": 1, }"), "{ \"k\": 1, }");
    assert_eq!(mask.apply("x \"p\": \"long-enough\""), "x [masked]");
}

/// A variable may hold any bytes. Where a text is displayed, those that aren't UTF-8 are U+FFFD.
#[test]
fn a_secret_that_is_not_utf8_is_masked() {
    let secret = b"s3cr3t-\xff\xfe-value";
    let mask = Arc::new(Mask::new([secret]));
    let displayed = String::from_utf8_lossy(secret);
    assert_eq!(mask.apply(&displayed), MASKED);
    assert_eq!(mask.apply("s3cr3t-%FF%FE-value"), MASKED);
    assert_eq!(mask.apply(&STANDARD.encode(secret)), MASKED);
    let mut stream = MaskedStream::new(mask);
    let mut passed = Vec::new();
    for byte in secret {
        stream.push(&[*byte], |bytes| passed.extend_from_slice(bytes));
    }
    stream.finish(|bytes| passed.extend_from_slice(bytes));
    assert_eq!(passed, MASKED.as_bytes());
}

/// If secrets can't be looked for, no text is shown at all.
#[test]
fn a_mask_without_an_automaton_hides_everything() {
    let mask = Mask {
        scope: MaskScope::new(Err(TooManySpellings)),
    };
    assert_eq!(mask.apply("anything"), MASKED);
    assert_eq!(mask.apply(""), "");
    assert_eq!(mask.apply_to_json(r#"{"a":1}"#), r#""[masked]""#);
    assert_eq!(mask.safe_prefix_len("anything"), 0);
    assert_eq!(mask.cover("any\nthing at all"), "[ma\nsked]*******");
    let mask = Arc::new(mask);
    for (pieces, masked) in [(["any", "", "thing"], MASKED), ([""; 3], "")] {
        let mut stream = MaskedStream::new(Arc::clone(&mask));
        let mut passed = Vec::new();
        for piece in pieces {
            stream.push(piece.as_bytes(), |bytes| passed.extend_from_slice(bytes));
        }
        stream.finish(|bytes| passed.extend_from_slice(bytes));
        assert_eq!(passed, masked.as_bytes());
    }
}

/// What is left of a character isn't text, so nothing of the text is shown.
#[test]
fn a_text_whose_secret_ends_within_a_character_is_covered_as_a_whole() {
    let secret = b"s3cr3t-\xc3";
    let mask = Mask::new([&secret[..]]);
    assert_eq!(mask.cover("x s3cr3t-\u{e9}\ny"), "[masked]***\n*");
}

#[test]
fn a_covered_text_keeps_its_length_and_its_lines() {
    let mask = Mask::new(["s3cr3t", "longer-s3cr3t/é", "one-line\nother-line"]);
    for (text, covered) in [
        ("a s3cr3t b", "a [maske b"),
        ("é longer-s3cr3t/é.", "é [masked]********."),
        ("one-line\r\nother-line", "[masked]\r\n**********"),
        ("nothing", "nothing"),
    ] {
        assert_eq!(mask.cover(text), covered);
        assert_eq!(mask.cover(text).len(), text.len());
    }
}
