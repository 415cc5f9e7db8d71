//! Templates: texts with values from the input and from the environment, and what of them is known without the
//! environment.

use std::fmt;
use std::sync::Arc;

use serde_json::value::RawValue;

use crate::os::Environment;

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

    /// Returns the template without its values from the input.
    pub fn without_values(&self) -> PartialTemplate {
        PartialTemplate(
            self.parts
                .iter()
                .filter_map(TemplatePart::as_segment)
                .collect(),
        )
    }

    /// Returns the template up to its first value from the input.
    pub fn before_values(&self) -> PartialTemplate {
        PartialTemplate(
            self.parts
                .iter()
                .map_while(TemplatePart::as_segment)
                .collect(),
        )
    }

    /// Returns the text with `value_at` of each path in place of its values. Environment variables stay as they are
    /// written, without their defaults.
    pub fn fill(&self, value_at: impl Fn(&[String]) -> String) -> String {
        self.parts
            .iter()
            .map(|part| match part {
                TemplatePart::Text(text) => text.clone(),
                TemplatePart::Value { path, .. } => value_at(path),
                TemplatePart::Env { name, .. } => format!("${{{name}}}"),
            })
            .collect()
    }

    /// Returns the variables without a default that are unset or empty, sorted by name, each once.
    pub fn missing_variables<'t>(
        templates: &[&'t Self],
        environment: &Environment,
    ) -> Vec<&'t str> {
        let mut missing: Vec<&str> = templates
            .iter()
            .flat_map(|template| &template.parts)
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
        self.parts
            .iter()
            .skip_while(is_before_query)
            .filter_map(|part| match part {
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
                TemplatePart::Value {
                    path,
                    optional,
                    splat,
                } => {
                    let optional = if *optional { "?" } else { "" };
                    let splat = if *splat { "..." } else { "" };
                    write!(f, "{{{}{optional}{splat}}}", path.join("."))?;
                }
                other => other.as_segment().iter().try_for_each(|part| part.fmt(f))?,
            }
        }
        Ok(())
    }
}

/// A text in which only environment variables are left to fill in.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PartialTemplate(pub Vec<Segment>);

/// A piece of a [`PartialTemplate`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Segment {
    /// Literal text, never parsed again.
    Text(String),
    /// An environment variable.
    Env {
        /// The name of the variable.
        name: String,
        /// Used if the variable is unset or empty.
        default: Option<String>,
    },
}

/// A JSON body in which only environment variables are left to fill in.
#[derive(Debug, Clone)]
pub enum PartialJson {
    /// A value taken verbatim from the input or the file. A whole input is shared.
    Raw(Arc<RawValue>),
    /// A string.
    Text(PartialTemplate),
    /// An array.
    Array(Vec<PartialJson>),
    /// An object.
    Object(Vec<(String, PartialJson)>),
}

impl PartialTemplate {
    /// Fills in every variable, using `env` to look it up, and returns the text.
    ///
    /// # Errors
    /// The name of the first variable that is unset or empty and has no default.
    pub fn resolve(&self, env: &dyn Fn(&str) -> Option<String>) -> Result<String, String> {
        let mut text = String::new();
        for piece in &self.0 {
            match piece {
                Segment::Text(part) => text.push_str(part),
                Segment::Env { name, default } => {
                    let value = env(name).filter(|value| !value.is_empty());
                    text.push_str(&value.or_else(|| default.clone()).ok_or(name)?);
                }
            }
        }
        Ok(text)
    }
}

/// For people and plans. Shows variables by name, never by value.
impl fmt::Display for PartialTemplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|piece| piece.fmt(f))
    }
}

/// Formats a variable as written in tools.yaml, with its default.
impl fmt::Display for Segment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            Self::Env { name, default } => match default {
                Some(default) => write!(f, "${{{name}:-{default}}}"),
                None => write!(f, "${{{name}}}"),
            },
        }
    }
}

/// The program and its arguments.
#[derive(Clone, PartialEq, Eq)]
pub enum ArgumentList {
    /// One after another in a single text, because a turn may have a million calls. Each ends at a NUL character.
    Text(Box<str>),
    /// One of them contains a NUL character, so the program can't be started with them.
    WithNul(Box<[Box<str>]>),
}

impl ArgumentList {
    /// Returns the program and its arguments.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        let (text, list) = match self {
            Self::Text(text) => (&**text, &[][..]),
            Self::WithNul(list) => ("", &**list),
        };
        text.split_terminator('\0')
            .chain(list.iter().map(|argument| &**argument))
    }

    /// Returns the program. Empty if there is none.
    pub fn program(&self) -> &str {
        self.iter().next().unwrap_or_default()
    }
}

impl Default for ArgumentList {
    fn default() -> Self {
        Self::Text(Box::default())
    }
}

impl<T: AsRef<str>> FromIterator<T> for ArgumentList {
    fn from_iter<I: IntoIterator<Item = T>>(arguments: I) -> Self {
        let mut text = String::new();
        let mut ends = Vec::new();
        for argument in arguments {
            text.push_str(argument.as_ref());
            ends.push(text.len());
            text.push('\0');
        }
        if text.matches('\0').count() == ends.len() {
            return Self::Text(text.into());
        }
        let arguments = std::iter::once(0)
            .chain(ends.iter().map(|end| end + 1))
            .zip(&ends)
            .map(|(begin, end)| text[begin..*end].into());
        Self::WithNul(arguments.collect())
    }
}

impl<const N: usize> PartialEq<[&str; N]> for ArgumentList {
    fn eq(&self, other: &[&str; N]) -> bool {
        self.iter().eq(other.iter().copied())
    }
}

impl fmt::Debug for ArgumentList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_argument_stays_one() {
        for arguments in [&[][..], &[""], &["", ""], &["cat", "", "a b", ""]] {
            let list: ArgumentList = arguments.iter().collect();
            assert_eq!(list.iter().collect::<Vec<_>>(), arguments);
            assert_eq!(format!("{list:?}"), format!("{arguments:?}"));
        }
    }

    /// Otherwise, one value could become two arguments, or lose its end.
    #[test]
    fn a_nul_character_neither_splits_nor_ends_an_argument() {
        let arguments = ["cat", "a\0-rf", "", "b\0"];
        let list: ArgumentList = arguments.iter().collect();
        assert_eq!(list.iter().collect::<Vec<_>>(), arguments);
    }
}
