//! Secrets in what is written → `[masked]`. `forms` says how a secret is spelled, `needles` is the automaton of all
//! spellings, `view` and `escapes` say what a text says, `scan` finds secrets in both, `stream` replaces them.

mod escapes;
mod forms;
mod needles;
#[cfg(test)]
mod properties;
mod scan;
mod stream;
mod view;

use std::borrow::Cow;

use serde::de::IgnoredAny;

use forms::Form;
use needles::Needles;
use scan::Scan;
use stream::Held;
pub use stream::MaskedStream;

/// What stands in the place of a secret.
const MASKED: &str = "[masked]";

/// Replaces the values of secrets wherever they turn up: as they are, percent-encoded, in base64, or escaped as in JSON,
/// also twice, and as in HTML.
#[derive(Debug, Clone, Default)]
pub struct Mask {
    needles: Option<Needles>,
}

impl Mask {
    /// Values shorter than this, in bytes, are never masked: they would hide innocent text.
    pub const SHORTEST: usize = 6;

    /// A mask over these values, without the space around them, which gets lost on the way.
    pub fn new<'a>(values: impl IntoIterator<Item = &'a str>) -> Self {
        let values = values.into_iter().map(str::trim);
        let mut forms: Vec<Form> = values
            .filter(|value| value.len() >= Self::SHORTEST)
            .flat_map(forms::of)
            .collect();
        forms.sort_by(|a, b| (&a.text, a.ends.is_base64).cmp(&(&b.text, b.ends.is_base64)));
        forms.dedup_by(|a, b| a.text == b.text && a.ends.is_base64 == b.ends.is_base64);
        let needles = Needles::new(&forms);
        Self { needles }
    }

    /// The text with every secret replaced by `[masked]`; borrowed where it holds none.
    pub fn text<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let Some(needles) = &self.needles else {
            return Cow::Borrowed(text);
        };
        let mut scan = Scan::new(needles);
        scan.push(needles, text.as_bytes());
        scan.finish(needles);
        if scan.is_clean() {
            return Cow::Borrowed(text);
        }
        let mut masked = Vec::with_capacity(text.len());
        let mut pass = |bytes: &[u8]| masked.extend_from_slice(bytes);
        Held::whole(text).release(&mut scan, usize::MAX, &mut pass);
        Cow::Owned(String::from_utf8_lossy(&masked).into_owned())
    }

    /// A JSON text with every secret replaced that is JSON still. Where a secret was more than a part of a string, the
    /// whole becomes a string.
    pub fn json<'t>(&self, json: &'t str) -> Cow<'t, str> {
        let masked = self.text(json);
        if matches!(masked, Cow::Owned(_)) && serde_json::from_str::<IgnoredAny>(&masked).is_err() {
            return Cow::Owned(serde_json::Value::from(masked).to_string());
        }
        masked
    }

    /// How much of `text`, which is still arriving, may be shown: all but an end with which a secret may begin, as it
    /// stands there or as it is said. In bytes.
    pub fn safe(&self, text: &str) -> usize {
        let Some(needles) = &self.needles else {
            return text.len();
        };
        let mut scan = Scan::new(needles);
        scan.push(needles, text.as_bytes());
        let certain = text.floor_char_boundary(scan.certain(needles));
        // The digit before base64 has bits of the secret, too.
        certain - forms::last_digit(&text.as_bytes()[..certain])
    }
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD};
    use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
    use url::form_urlencoded::byte_serialize;

    use super::*;

    /// FAULTS 131.
    #[test]
    fn every_form_is_masked() {
        let secret = "s3cr3t/-with \"quotes\"+é";
        let mask = Mask::new([secret, "short"]);
        let spelled = [
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
        for text in spelled {
            let text = format!("before {text} after");
            let masked = mask.text(&text);
            assert!(masked.contains(MASKED), "{text}");
            assert!(masked.starts_with("before ") && masked.ends_with(" after"));
        }
        assert_eq!(mask.text("a short word"), "a short word");
        assert_eq!(Mask::default().text("s3cr3t"), "s3cr3t");
    }

    /// FAULTS 131: wherever a secret stands in what is encoded, by whatever alphabet, padded or not: of the base64 that
    /// has a bit of it, nothing is left, nor more than that taken away.
    #[test]
    fn base64_leaves_no_rest() {
        for secret in [
            "s3cr3t-0",
            "s3cr3t-01",
            "s3cr3t-012",
            "s3cr3t\u{3ff}\u{7ff}>>>",
        ] {
            let mask = Mask::new([secret]);
            for (before, behind) in (0..12).map(|n| (n % 4, n / 4)) {
                let (before, behind) = ("\0".repeat(before), "\0".repeat(behind));
                let text = format!("{before}{secret}{behind}");
                for alphabet in [STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD] {
                    let encoded = alphabet.encode(&text);
                    let masked = mask.text(&encoded).into_owned();
                    let rest = masked.replacen(MASKED, "", 1);
                    assert!(masked.contains(MASKED), "{encoded}");
                    assert!(
                        rest.trim_end_matches('=').bytes().all(|c| c == b'A'),
                        "{masked}"
                    );
                    assert!(!masked.contains("]="), "{masked}");
                    let in_url = utf8_percent_encode(&encoded, NON_ALPHANUMERIC).to_string();
                    let masked = mask.text(&in_url).replacen(MASKED, "", 1);
                    assert!(masked.len() < in_url.len(), "{in_url}");
                    let rest = masked.replace("%3D", "");
                    assert!(rest.bytes().all(|c| c == b'A'), "{in_url} {masked}");
                }
            }
        }
    }

    /// FAULTS 131: what is clipped in the midst of a secret tells no half of it.
    #[test]
    fn a_clipped_secret_is_masked() {
        let mask = Mask::new(["s3cr3t-välue"]);
        for clipped in ["s3cr3t…", "s3cr3t-vä…", "s3cr3t-välu…"] {
            assert_eq!(mask.text(&format!("a {clipped} b")), "a [masked] b");
        }
        assert_eq!(mask.text("s3cr…"), "s3cr…");
        assert_eq!(mask.text("s3cr3t or …"), "s3cr3t or …");
    }

    /// FAULTS 131: a writer of JSON may escape what it likes.
    #[test]
    fn escapes_hide_nothing() {
        let mask = Mask::new(["s3cr3t-value"]);
        let json = r#"{"a\"":"\u0073\u0033cr3t-value\n","b":["\\","s3cr3t-value"],"n":1.00}"#;
        let masked = r#"{"a\"":"[masked]\n","b":["\\","[masked]"],"n":1.00}"#;
        assert_eq!(mask.json(json), masked);
        let innocent = r#"{"a":"\u0041\n"}"#;
        assert!(matches!(mask.json(innocent), Cow::Borrowed(_)));
    }

    /// A variable may end in a line break that its users take off.
    #[test]
    fn the_space_around_a_value_is_none_of_it() {
        let mask = Mask::new(["s3cr3t-value\n"]);
        assert_eq!(mask.text("<s3cr3t-value>"), "<[masked]>");
    }

    /// FAULTS 131: a secret made of digits does not break the JSON that it is taken out of.
    #[test]
    fn masked_json_is_json() {
        let mask = Mask::new(["123456"]);
        assert_eq!(mask.json(r#"{"a":"x123456"}"#), r#"{"a":"x[masked]"}"#);
        assert_eq!(mask.json(r#"{"a":123456}"#), r#""{\"a\":[masked]}""#);
        assert_eq!(mask.json(r#"{"a":1}"#), r#"{"a":1}"#);
    }
}
