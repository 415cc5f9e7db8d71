//! How `replay` compares results.

use std::borrow::Cow;

use regex::Regex;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::json::unescape_pointer_token;

/// How `replay` compares a tool's results with recorded ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Compare {
    /// Compare character by character.
    Exact,
    /// Compare JSON as JSON, also inside strings, and other text as text.
    Json,
    /// Compare only the shape of JSON, that is, keys and types. Other text is not compared.
    Schema,
    /// Don't compare.
    None,
}

/// A part of a result that may differ: `/a/b` (RFC 6901) from the root, or `//a/b` for any `b` inside an `a`, at any
/// depth.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IgnorePattern {
    at_any_depth: bool,
    /// Unescaped. Never empty.
    parts: Vec<String>,
}

impl IgnorePattern {
    /// Parses `/pointer` or `//name`.
    ///
    /// # Errors
    /// `text` is neither. The error says what is expected, in one sentence without a period.
    pub fn parse(text: &str) -> Result<Self, String> {
        let expected = || {
            format!("`{text}` isn't part of a result: write `/pointer`, or `//name` at any depth")
        };
        let rest = text.strip_prefix('/').ok_or_else(expected)?;
        let (at_any_depth, rest) = match rest.strip_prefix('/') {
            Some(rest) => (true, rest),
            None => (false, rest),
        };
        if rest.is_empty() {
            return Err(expected());
        }
        let parts = rest.split('/').map(unescape_pointer_token).collect();
        Ok(Self {
            at_any_depth,
            parts,
        })
    }

    /// Whether the pattern matches the part at `path`.
    pub fn matches<T: AsRef<str>>(&self, path: &[T]) -> bool {
        let own = self.parts.iter().map(String::as_str);
        let surplus = path.len().checked_sub(self.parts.len());
        let Some(prefix_len) = surplus.filter(|prefix_len| self.at_any_depth || *prefix_len == 0)
        else {
            return false;
        };
        own.eq(path[prefix_len..].iter().map(AsRef::as_ref))
    }
}

/// Replaces parts of texts before they are compared, such as times, hashes and durations.
#[derive(Debug, Clone)]
pub struct TextNormalizer {
    pattern: Regex,
    /// May refer to groups of the pattern: `$1`, `${name}`.
    replacement: String,
}

impl TextNormalizer {
    /// Creates a normalizer that replaces each match of the regular expression `pattern`.
    ///
    /// # Errors
    /// `pattern` isn't a regular expression. The error says what is wrong with it, in one line.
    pub fn new(pattern: &str, replacement: &str) -> Result<Self, String> {
        let pattern = Regex::new(pattern).map_err(|error| {
            let message = error.to_string();
            let last = message.lines().last().unwrap_or_default();
            last.trim_start_matches("error: ").to_owned()
        })?;
        Ok(Self {
            pattern,
            replacement: replacement.to_owned(),
        })
    }

    /// Creates a normalizer that removes each match of the regular expression `pattern`.
    ///
    /// # Errors
    /// As for [`new`](Self::new).
    pub fn removing(pattern: &str) -> Result<Self, String> {
        Self::new(pattern, "")
    }

    /// Replaces all matches in `text`.
    pub fn apply<'t>(&self, text: &'t str) -> Cow<'t, str> {
        self.pattern.replace_all(text, &*self.replacement)
    }
}

#[cfg(test)]
mod tests {

    use crate::types::compare::{IgnorePattern, TextNormalizer};

    #[test]
    fn each_match_is_replaced() {
        let apply = |pattern: &str, replacement: &str, text: &str| {
            let normalizer = TextNormalizer::new(pattern, replacement).unwrap();
            normalizer.apply(text).into_owned()
        };
        assert_eq!(apply(r"\d+", "N", "1 of 20"), "N of N");
        assert_eq!(apply(r"(\w+)=\w+", "$1=X", "a=b c"), "a=X c");
        assert_eq!(apply(r"(?m)^#.*\n", "", "# x\ny\n"), "y\n");
        for (wrong, why) in [
            ("(", "unclosed group"),
            (
                "a(?=b)",
                "look-around, including look-ahead and look-behind, is not supported",
            ),
        ] {
            assert_eq!(TextNormalizer::new(wrong, "").unwrap_err(), why);
        }
    }

    #[test]
    fn a_part_is_matched_by_its_path() {
        let at = |text: &str, path: &[&str]| IgnorePattern::parse(text).unwrap().matches(path);
        assert!(at("/a", &["a"]) && !at("/a", &["b", "a"]) && !at("/a", &["a", "b"]));
        assert!(at("//a", &["a"]) && at("//a", &["b", "a"]) && !at("//a", &["a", "b"]));
        assert!(at("//a/0", &["b", "a", "0"]) && !at("//a/0", &["0"]));
        assert!(at("/a~1b/~0", &["a/b", "~"]));
        assert!(at("/a/", &["a", ""]));
        for wrong in ["", "a", "/", "//", "$.a"] {
            assert!(IgnorePattern::parse(wrong).is_err(), "{wrong}");
        }
    }
}
