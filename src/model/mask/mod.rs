mod begun;
mod forms;

use std::borrow::Cow;
use std::ops::Range;

use aho_corasick::{AhoCorasick, Match, MatchKind};
use serde::de::IgnoredAny;

use forms::{Ends, Form};

/// What stands in the place of a secret.
const MASKED: &str = "[masked]";
/// How far base64 of a secret may reach beyond the characters that are looked for, in bytes: a digit before, one
/// behind, and the padding, which a URL spells `%2B`, `%2F` and `%3D%3D`.
const REACH: usize = 12;

/// Replaces the values of secrets wherever they turn up: as they are, percent-encoded, in base64, and as JSON would
/// escape them.
#[derive(Debug, Clone, Default)]
pub struct Mask {
    needles: Option<AhoCorasick>,
    /// Of each needle.
    ends: Vec<Ends>,
    /// The needles, sorted.
    texts: Vec<String>,
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
        forms.sort_by(|a, b| a.text.cmp(&b.text));
        forms.dedup_by(|a, b| a.text == b.text);
        if forms.is_empty() {
            return Self::default();
        }
        let needles = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostLongest)
            .build(forms.iter().map(|form| &form.text));
        Self {
            needles: needles.ok(),
            ends: forms.iter().map(|form| form.ends).collect(),
            texts: forms.into_iter().map(|form| form.text).collect(),
        }
    }

    /// The text with every secret replaced by `[masked]`; borrowed where it holds none.
    pub fn text<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let mut secrets = self.find(text.as_bytes()).peekable();
        if secrets.peek().is_none() {
            return Cow::Borrowed(text);
        }
        let mut masked = String::with_capacity(text.len());
        let mut done = 0;
        for secret in secrets {
            masked.push_str(&text[done..secret.start]);
            masked.push_str(MASKED);
            done = secret.end;
        }
        masked.push_str(&text[done..]);
        Cow::Owned(masked)
    }

    /// A JSON text with every secret replaced that is JSON still, however its strings are escaped. Where a secret was
    /// more than a part of a string, the whole becomes a string.
    pub fn json<'t>(&self, json: &'t str) -> Cow<'t, str> {
        let strings = self.strings(json);
        let masked = match self.text(&strings) {
            Cow::Borrowed(_) => return strings,
            Cow::Owned(masked) => masked,
        };
        if serde_json::from_str::<IgnoredAny>(&masked).is_err() {
            return Cow::Owned(serde_json::Value::from(masked).to_string());
        }
        Cow::Owned(masked)
    }

    /// A JSON text with every secret replaced in those of its strings that have an escape: `"\u0073ecret"` says
    /// `secret`.
    pub fn strings<'t>(&self, json: &'t str) -> Cow<'t, str> {
        if self.needles.is_none() || !json.contains('\\') {
            return Cow::Borrowed(json);
        }
        let mut masked = String::new();
        let mut done = 0;
        for string in strings(json) {
            let spelled = &json[string.clone()];
            let said = serde_json::from_str::<String>(spelled).unwrap_or_default();
            if let Cow::Owned(said) = self.text(&said) {
                masked.push_str(&json[done..string.start]);
                masked.push_str(&serde_json::Value::from(said).to_string());
                done = string.end;
            }
        }
        if done == 0 {
            return Cow::Borrowed(json);
        }
        masked.push_str(&json[done..]);
        Cow::Owned(masked)
    }

    /// The most bytes of a stream that one secret may take; 0 where there is none.
    pub fn longest(&self) -> usize {
        self.needles
            .as_ref()
            .map_or(0, |needles| needles.max_pattern_len() + REACH)
    }

    /// Passes on `bytes` with every secret replaced that begins before `until`, and returns how many bytes were used:
    /// `until`, or more where a secret reaches beyond it.
    pub fn replace(&self, bytes: &[u8], until: usize, pass: &mut dyn FnMut(&[u8])) -> usize {
        let mut done = 0;
        for secret in self.find(bytes).take_while(|secret| secret.start < until) {
            pass(&bytes[done..secret.start]);
            pass(MASKED.as_bytes());
            done = secret.end;
        }
        if done < until {
            pass(&bytes[done..until]);
            done = until;
        }
        done
    }

    /// Where secrets stand, from left to right.
    fn find<'b>(&'b self, bytes: &'b [u8]) -> impl Iterator<Item = Range<usize>> + 'b {
        let needles = self.needles.iter();
        let found = needles.flat_map(move |needles| needles.find_iter(bytes));
        let mut done = 0;
        found.map(move |found| {
            let Range { start, end } = self.reach(bytes, &found);
            let start = start.max(done);
            done = end.max(start);
            start..done
        })
    }

    /// All of a secret: base64 has some of its bits in the characters beside those that are looked for.
    fn reach(&self, bytes: &[u8], found: &Match) -> Range<usize> {
        let Range { mut start, mut end } = found.range();
        let ends = self.ends[found.pattern().as_usize()];
        if ends.before {
            start -= forms::last_digit(&bytes[..start]);
        }
        if ends.behind {
            end += forms::first_digit(&bytes[end..]);
            end += forms::padding(&bytes[end..]);
        }
        start..end
    }
}

/// The strings of a JSON text, quotes included.
fn strings(json: &str) -> impl Iterator<Item = Range<usize>> {
    let mut bytes = json.bytes().enumerate();
    std::iter::from_fn(move || {
        let (start, _) = bytes.find(|(_, byte)| *byte == b'"')?;
        let mut escaped = false;
        let (end, _) = bytes.find(|(_, byte)| {
            let is_end = *byte == b'"' && !escaped;
            escaped = *byte == b'\\' && !escaped;
            is_end
        })?;
        Some(start..end + 1)
    })
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
