//! Tests each escape by itself: what it decodes to, and from which byte on that is certain.

use super::*;

use crate::decoder::MAX_BACKSLASHES;

/// Decodes a text byte by byte. Returns what was certain before its end, and all of it.
fn decode(mut stage: DecoderStage, text: &str) -> (String, String) {
    let mut decoded = Vec::new();
    let mut emit = |byte: DecodedByte| decoded.push(byte.byte);
    for (start, byte) in text.bytes().enumerate() {
        let end = start + 1;
        if stage.concerns(byte) {
            stage.push(DecodedByte { byte, start, end }, &mut emit);
        } else {
            emit(DecodedByte { byte, start, end });
        }
    }
    let certain = decoded.clone();
    stage.decode_pending(true, &mut |byte| decoded.push(byte.byte));
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (text(certain), text(decoded))
}

fn assert_decoded<'t>(
    stage: impl Fn() -> DecoderStage,
    cases: impl IntoIterator<Item = (&'t str, &'t str, &'t str)>,
) {
    for (text, certain, decoded) in cases {
        let expected = (certain.to_owned(), decoded.to_owned());
        assert_eq!(decode(stage(), text), expected, "{text}");
    }
}

#[test]
fn json_escapes_are_decoded_as_soon_as_they_are_complete() {
    let stage = || DecoderStage::new(b"\\", decode_escape);
    let cases = [
        (r"\n\t\r\b\f", "\n\t\r\u{8}\u{c}"),
        (r#"\"\'\/\\"#, r#""'/\"#),
        (r"\\u0041", r"\u0041"),
        (r"\q", r"\q"),
        (r"\$\ \!\~", "$ !~"),
        (r"\u0041\u00e9", "Aé"),
        (r"\u00g", r"\u00g"),
        (r"\ud83d\ude00x", "😀x"),
        (r"\ud83dx", "\u{fffd}x"),
        (r"\ud83d\nde00", "\u{fffd}\nde00"),
        (r"\ud83d\ug", "\u{fffd}\\ug"),
        (r"\ud83d\u0041", "\u{fffd}A"),
        (r"\ude00", "\u{fffd}"),
        (r"\u{e9}\u{1F600}", "é😀"),
        (r"\u{110000}", "\u{fffd}"),
        (r"\u{}", r"\u{}"),
        (r"\u{1234567", r"\u{1234567"),
        (r"\x41x", "Ax"),
        (r"\x4g", r"\x4g"),
    ];
    assert_decoded(stage, cases.map(|(text, decoded)| (text, decoded, decoded)));
    let incomplete = [
        (r"\", r"\"),
        (r"\u", r"\u"),
        (r"\u004", r"\u004"),
        (r"\ud83d", "\u{fffd}"),
        (r"\ud83d\", "\u{fffd}\\"),
        (r"\ud83d\u", "\u{fffd}\\u"),
        (r"\ud83d\ude0", "\u{fffd}\\ude0"),
        (r"\u{", r"\u{"),
        (r"\u{41", r"\u{41"),
        (r"\x", r"\x"),
        (r"\x4", r"\x4"),
    ];
    assert_decoded(stage, incomplete.map(|(text, decoded)| (text, "", decoded)));
}

/// However often a text was escaped, its escapes mean the same.
#[test]
fn the_number_of_backslashes_makes_no_difference() {
    let stage = || DecoderStage::new(b"\\", decode_nested_escape);
    let sixteen = r"\".repeat(MAX_BACKSLASHES);
    assert_decoded(
        stage,
        [
            (r"\nx", "\nx", "\nx"),
            (r"\\nx", "\nx", "\nx"),
            (r"\\\\u0041", "A", "A"),
            (r"\\x41x", "Ax", "Ax"),
            (r"\q", r"\q", r"\q"),
            (r"\\\\q", r"\q", r"\q"),
            (r"\\", "", r"\"),
            (r"\\ud83d\\ude00x", "😀x", "😀x"),
            (r"\\ud83d\ude00x", "\u{fffd}\u{fffd}x", "\u{fffd}\u{fffd}x"),
            (&sixteen, r"\", r"\"),
        ],
    );
}

#[test]
fn bytes_of_urls_are_decoded_as_soon_as_they_are_complete() {
    let stage = || DecoderStage::new(b"%", decode_percent);
    let cases = [("%41%c3%A9", "Aé"), ("%g", "%g"), ("%4g", "%4g")];
    assert_decoded(stage, cases.map(|(text, decoded)| (text, decoded, decoded)));
    assert_decoded(stage, ["%", "%4"].map(|text| (text, "", text)));
}

#[test]
fn characters_of_html_are_decoded_as_soon_as_they_are_complete() {
    let stage = || DecoderStage::new(b"&", decode_entity);
    let cases = [
        ("&lt;&gt;&quot;&apos;&amp;", "<>\"'&"),
        ("&sol;&AMP;&eacute;&Eacute;&NewLine;", "/&éÉ\n"),
        ("&fjlig;&NotSquareSubset;", "fj\u{228f}\u{338}"),
        ("&CounterClockwiseContourIntegral;", "\u{2233}"),
        ("&ampx", "&ampx"),
        ("&nosuchname;&Amp;", "&nosuchname;&Amp;"),
        ("&#38;&#x26;&#X26;", "&&&"),
        ("&#x0010ffff;", "\u{10ffff}"),
        ("&#x;", "&#x;"),
        ("&#38x", "&#38x"),
        ("&#x001234567", "&#x001234567"),
    ];
    assert_decoded(stage, cases.map(|(text, decoded)| (text, decoded, decoded)));
    let incomplete = ["&", "&am", "&eacute", "&#", "&#3", "&#x", "&#x00123456"];
    assert_decoded(stage, incomplete.map(|text| (text, "", text)));
}

#[test]
fn only_the_chosen_stages_decode() {
    let text = r"\\n&#37;41";
    for (stages, decoded) in [
        (0..0, r"\\n&#37;41"),
        (0..1, r"\n&#37;41"),
        (0..2, "\n&#37;41"),
        (0..4, "\n%41"),
        (3..5, r"\\nA"),
        (4..5, r"\\n&#37;41"),
        (0..5, "\nA"),
    ] {
        assert_eq!(decode_with_stages(text, stages), decoded.as_bytes());
    }
}
