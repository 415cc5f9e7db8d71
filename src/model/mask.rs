use std::borrow::Cow;

use aho_corasick::{AhoCorasick, MatchKind};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::de::IgnoredAny;
use url::form_urlencoded::byte_serialize;

/// All that a URL may not hold as it is (RFC 3986, section 2.3).
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');
/// What stands in the place of a secret.
const MASKED: &str = "[masked]";

/// Replaces the values of secrets wherever they turn up: as they are, percent-encoded, in base64, and as JSON would
/// escape them.
#[derive(Debug, Clone, Default)]
pub struct Mask {
    needles: Option<AhoCorasick>,
    /// The same, sorted.
    forms: Vec<String>,
}

impl Mask {
    /// Values shorter than this, in bytes, are never masked: they would hide innocent text.
    pub const SHORTEST: usize = 6;

    /// A mask over these values.
    pub fn new<'a>(values: impl IntoIterator<Item = &'a str>) -> Self {
        let mut forms: Vec<String> = values
            .into_iter()
            .filter(|value| value.len() >= Self::SHORTEST)
            .flat_map(forms)
            .collect();
        forms.sort();
        forms.dedup();
        if forms.is_empty() {
            return Self::default();
        }
        let needles = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostLongest)
            .build(&forms);
        Self {
            needles: needles.ok(),
            forms,
        }
    }

    /// The text with every secret replaced by `[masked]`; borrowed where it holds none.
    pub fn text<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let Some(needles) = self
            .needles
            .as_ref()
            .filter(|needles| needles.is_match(text))
        else {
            return Cow::Borrowed(text);
        };
        let mut masked = String::with_capacity(text.len());
        needles.replace_all_with(text, &mut masked, |_, _, to| {
            to.push_str(MASKED);
            true
        });
        Cow::Owned(masked)
    }

    /// A JSON text with every secret replaced that is JSON still. Where a secret was more than a part of a string, the
    /// whole becomes a string.
    pub fn json<'t>(&self, json: &'t str) -> Cow<'t, str> {
        match self.text(json) {
            Cow::Owned(masked) if serde_json::from_str::<IgnoredAny>(&masked).is_err() => {
                Cow::Owned(serde_json::Value::from(masked).to_string())
            }
            text => text,
        }
    }

    /// The length of the longest form of a secret, in bytes; 0 where there is none.
    pub fn longest(&self) -> usize {
        self.needles
            .as_ref()
            .map_or(0, AhoCorasick::max_pattern_len)
    }

    /// How much of `text` may be shown while more of it is to come: all but an end with which a secret may begin, in bytes.
    pub fn safe(&self, text: &str) -> usize {
        let farthest = text.len().saturating_sub(self.longest());
        let begins = |at: &usize| {
            let Some(end) = text.get(*at..) else {
                return false;
            };
            let next = self.forms.partition_point(|form| form.as_str() < end);
            self.forms
                .get(next)
                .is_some_and(|form| form.starts_with(end))
        };
        (farthest..text.len()).find(begins).unwrap_or(text.len())
    }

    /// Passes on `bytes` with every secret replaced that begins before `until`, and returns how many bytes were used:
    /// `until`, or more where a secret reaches beyond it.
    pub fn replace(&self, bytes: &[u8], until: usize, pass: &mut dyn FnMut(&[u8])) -> usize {
        let mut done = 0;
        let secrets = self
            .needles
            .iter()
            .flat_map(|needles| needles.find_iter(bytes));
        for secret in secrets.take_while(|secret| secret.start() < until) {
            pass(&bytes[done..secret.start()]);
            pass(MASKED.as_bytes());
            done = secret.end();
        }
        if done < until {
            pass(&bytes[done..until]);
            done = until;
        }
        done
    }
}

/// The forms in which a value may be met.
fn forms(value: &str) -> Vec<String> {
    let mut forms = vec![
        value.to_owned(),
        utf8_percent_encode(value, NON_ALPHANUMERIC).to_string(),
        utf8_percent_encode(value, RESERVED).to_string(),
        byte_serialize(value.as_bytes()).collect(),
    ];
    if let Ok(escaped) = serde_json::to_string(value) {
        forms.push(escaped.trim_matches('"').to_owned());
    }
    for skip in 0..3 {
        let shifted = [&b"\0\0\0"[..skip], value.as_bytes()].concat();
        // Only the characters that depend on nothing but the value: the first and last ones mix with its neighbours.
        let first = (skip * 8).div_ceil(6);
        let whole = shifted.len() * 8 / 6;
        for alphabet in [&STANDARD_NO_PAD, &URL_SAFE_NO_PAD] {
            let encoded = alphabet.encode(&shifted);
            forms.push(encoded[first..whole].to_owned());
        }
    }
    forms
}

#[cfg(test)]
mod tests {
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
            utf8_percent_encode(secret, RESERVED).to_string(),
            byte_serialize(secret.as_bytes()).collect(),
            STANDARD_NO_PAD.encode(format!("user:{secret}")),
            STANDARD_NO_PAD.encode(format!("u:{secret}:more")),
            URL_SAFE_NO_PAD.encode(format!("{secret}tail")),
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

    /// FAULTS 131: of a secret that is still arriving nothing is shown.
    #[test]
    fn a_begin_of_a_secret_is_held_back() {
        let mask = Mask::new(["s3cr3t-é\"x", "hunter22"]);
        for (text, shown) in [
            ("the s3cr3", "the "),
            ("the s3cr3t-\u{e9}\\", "the "),
            ("a hu", "a "),
            ("a hut", "a hut"),
            ("", ""),
        ] {
            assert_eq!(&text[..mask.safe(text)], shown);
        }
        assert_eq!(Mask::default().safe("the s3cr3"), 9);
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
