//! Parsed templates.

use std::fmt;

use crate::os::Environment;
use crate::types::invocation::Segment;

/// A text of tools.yaml with placeholders. It is parsed once and filled in for each call; the result is never parsed
/// again.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Template {
    /// In order. Two text parts are never adjacent.
    pub parts: Vec<TemplatePart>,
}

/// A part of a template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TemplatePart {
    /// Literal text.
    Text(String),
    /// `{a.b}`, `{a.b?}`, `{a.b...}` or `{a.b?...}`: a value from the input.
    Value {
        /// The name, split at the dots.
        path: Vec<String>,
        /// `?`: leaves out the argument, header, pair, or element if the value is missing.
        optional: bool,
        /// `...`: spreads an array into several arguments.
        splat: bool,
    },
    /// `${NAME}` or `${NAME:-default}`: an environment variable, read when the call is made.
    Env {
        /// The name of the variable.
        name: String,
        /// Used if the variable is unset or empty.
        default: Option<String>,
    },
}

impl TemplatePart {
    /// Converts the part into a [`Segment`], or returns `None` if it needs an input value.
    pub fn as_segment(&self) -> Option<Segment> {
        match self {
            Self::Text(text) => Some(Segment::Text(text.clone())),
            Self::Env { name, default } => Some(Segment::Env {
                name: name.clone(),
                default: default.clone(),
            }),
            Self::Value { .. } => None,
        }
    }
}

impl Template {
    /// Creates a template without placeholders.
    pub fn from_text(text: impl Into<String>) -> Self {
        Self {
            parts: vec![TemplatePart::Text(text.into())],
        }
    }

    /// Returns the text with `value_at` of each path in place of its values. Environment variables stay as they are
    /// written, without their defaults.
    pub fn fill(&self, value_at: impl Fn(&[String]) -> String) -> String {
        let parts = self.parts.iter().map(|part| match part {
            TemplatePart::Text(text) => text.clone(),
            TemplatePart::Value { path, .. } => value_at(path),
            TemplatePart::Env { name, .. } => format!("${{{name}}}"),
        });
        parts.collect()
    }

    /// Returns the variables without a default that are unset or empty, sorted by name, each once.
    pub fn missing_variables<'t>(
        templates: &[&'t Self],
        environment: &Environment,
    ) -> Vec<&'t str> {
        let parts = templates.iter().flat_map(|template| &template.parts);
        let mut missing: Vec<&str> = parts
            .filter_map(|part| match part {
                TemplatePart::Env {
                    name,
                    default: None,
                } => Some(name.as_str()),
                _ => None,
            })
            .filter(|name| environment.get(name).is_none_or(|value| value.is_empty()))
            .collect();
        missing.sort_unstable();
        missing.dedup();
        missing
    }

    /// Returns the path of the value, if the template consists of a single value and nothing else.
    pub fn sole_value(&self) -> Option<&[String]> {
        match self.parts.as_slice() {
            [TemplatePart::Value { path, .. }] => Some(path),
            _ => None,
        }
    }

    /// Returns the path of the array and whether it is optional, if the template is nothing but an array that is spread.
    pub fn sole_splat(&self) -> Option<(&[String], bool)> {
        match self.parts.as_slice() {
            [
                TemplatePart::Value {
                    path,
                    optional,
                    splat: true,
                },
            ] => Some((path, *optional)),
            _ => None,
        }
    }

    /// Whether the template contains a value from the input.
    pub fn uses_input(&self) -> bool {
        self.value_paths().next().is_some()
    }

    /// Returns the paths of the values from the input that the template contains.
    pub fn value_paths(&self) -> impl Iterator<Item = &[String]> {
        self.parts.iter().filter_map(|part| match part {
            TemplatePart::Value { path, .. } => Some(path.as_slice()),
            _ => None,
        })
    }

    /// Returns the text, if the template has no placeholders.
    pub fn sole_text(&self) -> Option<&str> {
        match self.parts.as_slice() {
            [] => Some(""),
            [TemplatePart::Text(text)] => Some(text),
            _ => None,
        }
    }

    /// Returns the names of the environment variables that the template reads.
    pub fn env_names(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().filter_map(|part| match part {
            TemplatePart::Env { name, .. } => Some(name.as_str()),
            _ => None,
        })
    }

    /// Returns the names of the environment variables after the `?` of a URL.
    pub fn query_env_names(&self) -> impl Iterator<Item = &str> {
        let is_before_query =
            |part: &&TemplatePart| !matches!(part, TemplatePart::Text(text) if text.contains('?'));
        let query = self.parts.iter().skip_while(is_before_query);
        query.filter_map(|part| match part {
            TemplatePart::Env { name, .. } => Some(name.as_str()),
            _ => None,
        })
    }
}

/// Formats the template as it would be written in tools.yaml.
impl fmt::Display for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for part in &self.parts {
            match part {
                TemplatePart::Text(text) => f.write_str(text)?,
                TemplatePart::Value {
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
                TemplatePart::Env {
                    name,
                    default: None,
                } => write!(f, "${{{name}}}")?,
                TemplatePart::Env {
                    name,
                    default: Some(default),
                } => write!(f, "${{{name}:-{default}}}")?,
            }
        }
        Ok(())
    }
}
