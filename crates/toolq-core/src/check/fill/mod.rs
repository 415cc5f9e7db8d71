//! Fills a tool's templates with the values of an input. Each value becomes part of exactly one argument, variable,
//! header, query pair or JSON value. It is never split and never expanded twice.

mod command;
pub(crate) mod invocation;
pub(crate) mod path_texts;

use std::borrow::Cow;

use crate::json::{Input, JsonText, json_pointer};
use crate::template::TemplateTarget;
use crate::types::{PartialTemplate, ProblemDetail, Segment, Template, TemplatePart};

/// Collects problems, so that all of them are reported at once.
#[derive(Default)]
pub(crate) struct ProblemCollector(pub(crate) Vec<ProblemDetail>);

impl ProblemCollector {
    /// Returns `filled`, unless there were problems.
    pub(crate) fn into_result<T>(mut self, filled: T) -> Result<T, Vec<ProblemDetail>> {
        if self.0.is_empty() {
            return Ok(filled);
        }
        self.0.dedup();
        Err(self.0)
    }

    /// Returns the value; `None` if it is omitted, or has a problem (which is collected).
    pub(crate) fn record<T>(&mut self, result: Result<Option<T>, ProblemDetail>) -> Option<T> {
        match result {
            Ok(value) => value,
            Err(detail) => {
                self.0.push(detail);
                None
            }
        }
    }
}

/// Creates a problem with the value at `path`.
pub(crate) fn problem_at(path: &[String], message: impl Into<String>) -> ProblemDetail {
    ProblemDetail::new(json_pointer(path), message)
}

/// Inserts every value into the template; returns `None` if an optional one is missing.
fn fill_template(
    template: &Template,
    input: &Input,
    target: TemplateTarget,
) -> Result<Option<PartialTemplate>, ProblemDetail> {
    let mut draft = PartialTemplate::default();
    for part in &template.parts {
        match part {
            TemplatePart::Text(text) => push_text(&mut draft, text),
            TemplatePart::Env { .. } => draft.0.extend(part.as_segment()),
            TemplatePart::Value { path, optional, .. } => match find_value(input, path, *optional)?
            {
                None => return Ok(None),
                Some(raw) => {
                    let value = target
                        .encode(value_text(raw))
                        .map_err(|cause| problem_at(path, cause))?;
                    push_text(&mut draft, &value);
                }
            },
        }
    }
    Ok(Some(draft))
}

/// Like [`fill_template`], for templates that never contain environment variables.
pub(crate) fn fill_plain_template(
    template: &Template,
    input: &Input,
    target: TemplateTarget,
) -> Result<Option<String>, ProblemDetail> {
    Ok(fill_template(template, input, target)?.map(|draft| draft.to_string()))
}

pub(crate) fn push_text(partial: &mut PartialTemplate, text: &str) {
    if let Some(Segment::Text(last)) = partial.0.last_mut() {
        last.push_str(text);
    } else if !text.is_empty() {
        partial.0.push(Segment::Text(text.to_owned()));
    }
}

/// Returns the value at `path`; `None` if it is optional and missing or `null`.
pub(crate) fn find_value<'i>(
    input: &'i Input,
    path: &[String],
    optional: bool,
) -> Result<Option<JsonText<'i>>, ProblemDetail> {
    match input.value_at(path) {
        Some(value) if optional && value.is_null() => Ok(None),
        None if optional => Ok(None),
        None => Err(problem_at(path, "is required")),
        value => Ok(value),
    }
}

/// Returns a string verbatim, any other value as JSON.
pub(crate) fn value_text(value: JsonText<'_>) -> String {
    let text = value.to_text();
    text.map_or_else(|| value.get().to_owned(), Cow::into_owned)
}
