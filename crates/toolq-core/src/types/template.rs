use std::fmt;

use crate::types::invocation::Piece;

/// A text of tools.yaml with places for values: parsed once, filled for each call, never parsed again.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Template {
    /// In order; two texts never stand side by side.
    pub parts: Vec<Part>,
}

/// A piece of a template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    /// Itself.
    Text(String),
    /// `{a.b}`, `{a.b?}`, `{a.b...}` or `{a.b?...}`: a value of the input.
    Value {
        /// Split at the dots.
        path: Vec<String>,
        /// `?`: leaves its argument, header, pair or element out where the value is missing.
        optional: bool,
        /// `...`: an array becomes several arguments.
        splat: bool,
    },
    /// `${NAME}` or `${NAME:-default}`: a variable of the environment, read when the call is made.
    Env {
        /// The variable.
        name: String,
        /// Where it is not set or empty.
        default: Option<String>,
    },
}

impl Part {
    /// The part as a piece of a draft; none where it needs a value of an input.
    pub fn as_piece(&self) -> Option<Piece> {
        match self {
            Self::Text(text) => Some(Piece::Text(text.clone())),
            Self::Env { name, default } => Some(Piece::Env {
                name: name.clone(),
                default: default.clone(),
            }),
            Self::Value { .. } => None,
        }
    }
}

impl Template {
    /// A template without places.
    pub fn text(text: impl Into<String>) -> Self {
        Self {
            parts: vec![Part::Text(text.into())],
        }
    }

    /// The single value that the template consists of, if it is nothing else.
    pub fn sole_value(&self) -> Option<&[String]> {
        match self.parts.as_slice() {
            [Part::Value { path, .. }] => Some(path),
            _ => None,
        }
    }

    /// The text that the template consists of, if it has no places.
    pub fn sole_text(&self) -> Option<&str> {
        match self.parts.as_slice() {
            [] => Some(""),
            [Part::Text(text)] => Some(text),
            _ => None,
        }
    }

    /// The names of the environment that it reads.
    pub fn env_names(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().filter_map(|part| match part {
            Part::Env { name, .. } => Some(name.as_str()),
            _ => None,
        })
    }
}

/// The template as its author could have written it.
impl fmt::Display for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for part in &self.parts {
            match part {
                Part::Text(text) => f.write_str(text)?,
                Part::Value {
                    path,
                    optional,
                    splat,
                } => {
                    let mark = match (optional, splat) {
                        (true, true) => "?...",
                        (false, true) => "...",
                        (true, false) => "?",
                        (false, false) => "",
                    };
                    write!(f, "{{{}{mark}}}", path.join("."))?;
                }
                Part::Env {
                    name,
                    default: None,
                } => write!(f, "${{{name}}}")?,
                Part::Env {
                    name,
                    default: Some(default),
                } => write!(f, "${{{name}:-{default}}}")?,
            }
        }
        Ok(())
    }
}
