//! Secrets in what is written → `[masked]`. `forms` says how a secret is spelled, `needles` is the automaton of all
//! spellings, `view` and `escapes` say what a text says, `scan` finds secrets in both on several tracks at once and passes
//! over what is `plain`, `stream` replaces them.

#[cfg(test)]
mod tests;

use std::borrow::Cow;

use serde::de::IgnoredAny;

use crate::patterns::Needles;
use crate::scan::Scan;
use crate::spellings;
use crate::spellings::Form;
use crate::stream::Held;

/// What stands in the place of a secret.
pub(crate) const MASKED: &str = "[masked]";

/// Replaces the values of secrets wherever they turn up: as they are, percent-encoded, in base64, or escaped as in JSON,
/// also twice, and as in HTML.
#[derive(Debug, Clone, Default)]
pub struct Mask {
    pub(crate) needles: Option<Needles>,
}

impl Mask {
    /// Values shorter than this, in bytes, are never masked: they would hide innocent text.
    pub const SHORTEST: usize = spellings::SHORTEST;

    /// A mask over these values, without the space around them, which gets lost on the way.
    pub fn new<'a>(values: impl IntoIterator<Item = &'a str>) -> Self {
        let values = values.into_iter().map(str::trim);
        let mut forms: Vec<Form> = values
            .filter(|value| value.len() >= Self::SHORTEST)
            .flat_map(spellings::of)
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
        certain - spellings::last_digit(&text.as_bytes()[..certain])
    }
}
