use crate::json::{Input, Json};
use crate::json_schema::pointer;
use crate::template::Sink;
use crate::types::{Detail, Draft, Part, Piece, Template};
use serde_json::value::RawValue;
use std::borrow::Cow;

/// What was found on the way, so that all of it is told at once.
#[derive(Default)]
pub(crate) struct Problems(pub(crate) Vec<Detail>);

impl Problems {
    /// What was filled, unless there were problems.
    pub(crate) fn or<T>(mut self, filled: T) -> Result<T, Vec<Detail>> {
        if self.0.is_empty() {
            return Ok(filled);
        }
        self.0.dedup();
        Err(self.0)
    }

    /// The value, or none where there is a problem or the place is left out.
    pub(crate) fn keep<T>(&mut self, filled: Result<Option<T>, Detail>) -> Option<T> {
        match filled {
            Ok(value) => value,
            Err(detail) => {
                self.0.push(detail);
                None
            }
        }
    }
}

/// A problem of the value at `path`.
pub(crate) fn detail(path: &[String], message: impl Into<String>) -> Detail {
    Detail {
        path: pointer(path),
        message: message.into(),
    }
}

/// The template with every value in its place; none where an optional one is missing.
pub(crate) fn draft(
    template: &Template,
    input: &Input,
    sink: Sink,
) -> Result<Option<Draft>, Detail> {
    let mut draft = Draft::default();
    for part in &template.parts {
        match part {
            Part::Text(text) => push(&mut draft, text),
            Part::Env { name, default } => draft.0.push(Piece::Env {
                name: name.clone(),
                default: default.clone(),
            }),
            Part::Value { path, optional, .. } => match found(input, path, *optional)? {
                None => return Ok(None),
                Some(raw) => {
                    let value = sink
                        .admitted(text(raw.into()))
                        .map_err(|cause| detail(path, cause))?;
                    push(&mut draft, &value);
                }
            },
        }
    }
    Ok(Some(draft))
}

/// The same for what never holds a variable of the environment.
pub(crate) fn plain(
    template: &Template,
    input: &Input,
    sink: Sink,
) -> Result<Option<String>, Detail> {
    Ok(draft(template, input, sink)?.map(|draft| draft.to_string()))
}

pub(crate) fn push(draft: &mut Draft, text: &str) {
    if let Some(Piece::Text(last)) = draft.0.last_mut() {
        last.push_str(text);
    } else if !text.is_empty() {
        draft.0.push(Piece::Text(text.to_owned()));
    }
}

/// The value at `path`. An optional one that is missing or `null` is none.
pub(crate) fn found<'i>(
    input: &'i Input,
    path: &[String],
    optional: bool,
) -> Result<Option<&'i RawValue>, Detail> {
    match input.at(path) {
        Some(raw) if optional && raw.get() == "null" => Ok(None),
        None if optional => Ok(None),
        None => Err(detail(path, "is required")),
        raw => Ok(raw),
    }
}

/// A string as it is, any other value as its JSON.
pub(crate) fn text(value: Json<'_>) -> String {
    let text = value.text();
    text.map_or_else(|| value.get().to_owned(), Cow::into_owned)
}
