use schemars::JsonSchema;
use serde::Deserialize;

/// How `replay` compares the results of a tool with those of a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Compare {
    /// Character by character.
    Exact,
    /// JSON as JSON, also inside strings; other text as text.
    Json,
    /// Of JSON only its shape: keys and types. Of other text nothing.
    Schema,
    /// Not at all.
    None,
}

/// A part of a result that may differ: `/a/b` (RFC 6901) from the top, `//a/b` wherever `b` stands inside an `a`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ignored {
    anywhere: bool,
    /// Unescaped; at least one.
    parts: Vec<String>,
}

impl Ignored {
    /// Reads `/pointer` or `//name`.
    ///
    /// # Errors
    /// It is neither; what it should be, in one sentence without a full stop.
    pub fn parse(text: &str) -> Result<Self, String> {
        let expected = || {
            format!("`{text}` is no part of a result: write `/pointer`, or `//name` at any depth")
        };
        let rest = text.strip_prefix('/').ok_or_else(expected)?;
        let (anywhere, rest) = match rest.strip_prefix('/') {
            Some(rest) => (true, rest),
            None => (false, rest),
        };
        if rest.is_empty() {
            return Err(expected());
        }
        let unescaped = |part: &str| part.replace("~1", "/").replace("~0", "~");
        let parts = rest.split('/').map(unescaped).collect();
        Ok(Self { anywhere, parts })
    }

    /// Whether it is the part at `path`.
    pub fn is_at<T: AsRef<str>>(&self, path: &[T]) -> bool {
        let own = self.parts.iter().map(String::as_str);
        let there = path.len().checked_sub(self.parts.len());
        let Some(above) = there.filter(|above| self.anywhere || *above == 0) else {
            return false;
        };
        own.eq(path[above..].iter().map(AsRef::as_ref))
    }
}

#[cfg(test)]
mod tests {

    use crate::types::compare::Ignored;

    #[test]
    fn a_part_is_known_by_its_path() {
        let at = |text: &str, path: &[&str]| Ignored::parse(text).unwrap().is_at(path);
        assert!(at("/a", &["a"]) && !at("/a", &["b", "a"]) && !at("/a", &["a", "b"]));
        assert!(at("//a", &["a"]) && at("//a", &["b", "a"]) && !at("//a", &["a", "b"]));
        assert!(at("//a/0", &["b", "a", "0"]) && !at("//a/0", &["0"]));
        assert!(at("/a~1b/~0", &["a/b", "~"]));
        assert!(at("/a/", &["a", ""]));
        for wrong in ["", "a", "/", "//", "$.a"] {
            assert!(Ignored::parse(wrong).is_err(), "{wrong}");
        }
    }
}
