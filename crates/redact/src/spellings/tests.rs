//! Spellings that only a value with unusual characters has, and where exactly base64 is cut.

use super::*;

use base64::engine::general_purpose::STANDARD;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

use crate::mask::Mask;

/// What comes before a secret decides how its base64 begins.
#[test]
fn base64_is_found_behind_any_bytes() {
    let mask = Mask::new(["s3cr3t-value"]);
    for (before, masked) in [
        ("", "[masked]"),
        ("k", "a[masked]"),
        ("ke", "a2[masked]"),
        ("key", "a2V5[masked]"),
    ] {
        let base64 = STANDARD.encode(format!("{before}s3cr3t-value"));
        assert_eq!(mask.apply(&base64), masked, "{base64}");
    }
}

/// The last digit of a secret, which it shares with the next byte, may be escaped.
#[test]
fn a_shared_digit_is_masked_with_its_percent_sign() {
    let mask = Mask::new(["s3cr3t-o"]);
    let base64 = STANDARD.encode(b"s3cr3t-o\xff\xff\xff\xff");
    let in_url = utf8_percent_encode(&base64, NON_ALPHANUMERIC).to_string();
    assert_eq!(mask.apply(&in_url), format!("[masked]{}", "%2F".repeat(5)));
}

/// An encoder may leave alone what looks like an escape already, or encode nothing but its percent sign.
#[test]
fn a_secret_that_contains_escapes_is_found_however_many_are_decoded() {
    let mask = Mask::new([r"pass\n%41word"]);
    for spelled in [
        r"pass\n%41word",
        r"pass\n%2541word",
        r"pass\\n%41word",
        r"pass%5Cn%2541word",
    ] {
        assert_eq!(mask.apply(spelled), "[masked]", "{spelled}");
    }
}

/// An HTML encoder may write any part of what looks like an escape as an entity, and leave another one alone.
#[test]
fn a_secret_that_contains_escapes_is_found_in_html_and_in_urls() {
    let mask = Mask::new(["p%41ss/&lt;%41w"]);
    for spelled in [
        "p&#37;41ss/&amp;lt;%41w",
        "p%&#x34;1ss/&#38;lt;&#37;4&#49;w",
        "p%2541ss%2F%26lt%3B%2541w",
        "p%2541ss/&lt;%2541w",
    ] {
        assert_eq!(mask.apply(spelled), "[masked]", "{spelled}");
    }
}

#[test]
fn a_secret_is_found_without_its_backslashes() {
    let mask = Mask::new(["pa\\ss-w\\ord"]);
    assert_eq!(mask.apply("pass-word"), "[masked]");
}

/// With backslashes as bash, zsh, regular expressions and Markdown write them, and with names of HTML.
#[test]
fn any_sign_may_be_written_with_a_backslash_or_by_its_name() {
    let secret = "pa$$ w`rd\"9&(é)/+1==";
    let mask = Mask::new([secret]);
    let all = |text: &str| -> String {
        let escaped = text.chars().map(|c| match c {
            _ if c.is_ascii_punctuation() || c == ' ' => format!("\\{c}"),
            _ => c.to_string(),
        });
        escaped.collect()
    };
    for spelled in [
        all(secret),
        all(&all(secret)),
        serde_json::to_string(&all(secret)).unwrap(),
        r#"declare -x TOKEN="pa\$\$ w\`rd\"9&(é)/+1==""#.to_owned(),
        r#"pa\$\$\ w\`rd\"9\&\(é\)/+1=="#.to_owned(),
        "pa$$ w`rd&quot;9&amp;(&eacute;)/+1==".to_owned(),
        "pa&dollar;&#36; w&grave;rd&QUOT;9&AMP;&lpar;&eacute;&rpar;&sol;&plus;1&equals;&equals;"
            .to_owned(),
        "pa&dollar;&dollar;&#32;w&DiacriticalGrave;rd&quot;9%26(%C3%A9)&sol;&plus;1==".to_owned(),
    ] {
        let masked = mask.apply(&spelled);
        assert!(
            masked.contains("[masked]") && !masked.contains("rd"),
            "{spelled} {masked}"
        );
    }
}

/// A secret that is long enough once it is decoded is found by itself.
#[test]
fn a_secret_is_found_decoded() {
    let mask = Mask::new(["&#38;abcde"]);
    assert_eq!(mask.apply("&abcde"), "[masked]");
}

/// Messages escape control characters and nothing else.
#[test]
fn a_truncated_secret_with_an_escaped_control_character_is_masked() {
    let mask = Mask::new(["pass\\n\u{1}word-tail"]);
    assert_eq!(mask.apply("pass\\n\\u{1}wor…"), "[masked]");
}
