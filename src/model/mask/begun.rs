//! A text that is still arriving: its end may be the begin of a secret, which no needle finds yet.

use super::{Mask, forms};

/// The most bytes of an escape that is not whole.
const ESCAPE: usize = 12;

impl Mask {
    /// How much of `json`, the begin of a JSON text, may be shown: all but an end with which a secret may begin, as it
    /// stands there or as its string says it. In bytes.
    pub fn safe(&self, json: &str) -> usize {
        if self.needles.is_none() {
            return json.len();
        }
        let safe = self.ends_before_secret(json);
        let Some(start) = open_string(json).filter(|&start| json[start..].contains('\\')) else {
            return safe;
        };
        let said = said(&json[start..]);
        if self.ends_before_secret(&said) < said.len() {
            return safe.min(start);
        }
        safe
    }

    /// Where a secret may begin that goes on behind `text`; the end of it where none may.
    fn ends_before_secret(&self, text: &str) -> usize {
        let longest = self.texts.iter().map(String::len).max().unwrap_or_default();
        let farthest = text.len().saturating_sub(longest);
        let begun = (farthest..text.len()).find(|&at| {
            let Some(end) = text.get(at..) else {
                return false;
            };
            let next = self.texts.partition_point(|form| form.as_str() < end);
            self.texts
                .get(next)
                .is_some_and(|form| form.starts_with(end))
        });
        let begun = begun.unwrap_or(text.len());
        // The digit before base64 has bits of the secret, too.
        begun - forms::last_digit(&text.as_bytes()[..begun])
    }
}

/// Where the string begins that is open at the end of `json`, its quote included.
fn open_string(json: &str) -> Option<usize> {
    let mut open = None;
    let mut escaped = false;
    for (at, byte) in json.bytes().enumerate() {
        match (open, byte) {
            _ if escaped => escaped = false,
            (Some(_), b'\\') => escaped = true,
            (Some(_), b'"') => open = None,
            (None, b'"') => open = Some(at),
            _ => {}
        }
    }
    open
}

/// What an open string says so far; all of it as it stands there where that can't be read.
fn said(string: &str) -> String {
    let ends = (1..=string.len()).rev().take(ESCAPE);
    let mut said = ends.filter_map(|end| {
        let closed = format!("{}\"", string.get(..end)?);
        serde_json::from_str(&closed).ok()
    });
    said.next().unwrap_or_else(|| string.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// FAULTS 131: of a secret that is still arriving nothing is shown, however it is escaped.
    #[test]
    fn a_begin_of_a_secret_is_held_back() {
        let mask = Mask::new(["s3cr3t-é\"x", "hunter22"]);
        for (text, shown) in [
            (r#"{"a":"the s3cr3"#, r#"{"a":"the "#),
            (r#"{"a":"the s3cr3t-\u00e9\"#, r#"{"a":"#),
            (r#"{"a":"the \u0073\u0033c"#, r#"{"a":"#),
            (r#"{"a":"the \u0073\u0033"#, r#"{"a":"#),
            (r#"{"a":"b","c":"\t hu"#, r#"{"a":"b","c":"#),
            (r#"{"a":"b","c":" hut"#, r#"{"a":"b","c":" hu"#),
            (r#"{"a":"hu","c":1"#, r#"{"a":"hu","c":"#),
            ("", ""),
        ] {
            assert_eq!(&text[..mask.safe(text)], shown, "{text}");
        }
        let text = r#"{"a":"the s3cr3"#;
        assert_eq!(Mask::default().safe(text), text.len());
    }

    /// Whatever of it is shown, no piece of a secret longer than a character is in it.
    #[test]
    fn no_begin_is_shown_on_the_way() {
        let mask = Mask::new(["s3cr3t-value"]);
        let text = r#"{"a":"= s3cr3t-value =","b":"\u003d \u0073\u0033cr3t-value"}"#;
        for cut in 0..text.len() {
            let shown = &text[..cut];
            let shown = &shown[..mask.safe(shown)];
            let masked = mask.json(shown);
            assert!(!masked.contains("s3"), "{masked}");
            assert!(!masked.contains("0073"), "{masked}");
        }
    }
}
