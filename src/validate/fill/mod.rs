//! A tool's templates and an input → what the call runs. A value becomes part of exactly one argument, variable,
//! header, pair or JSON value; it is never split, never looked into for places, and never put where it could be read as
//! something else. Nothing of the environment is known here.

mod body;
mod command;
mod request;
mod sink;
#[cfg(test)]
mod tests;

use std::borrow::Cow;

use serde_json::value::RawValue;

use crate::model::json::Json;
use crate::model::{
    AgentInvocation, Backing, Builtin, CommandInvocation, Detail, Draft, Input, Invocation, Part,
    Piece, Template, Tool,
};
use crate::validate::schema::pointer;
use sink::Sink;

/// What a call of `tool` runs; none where it has no backing.
///
/// # Errors
/// Every value that is missing or can't stand where the tool puts it.
pub(super) fn invocation(tool: &Tool, input: &Input) -> Result<Option<Invocation>, Vec<Detail>> {
    let mut problems = Problems::default();
    let invocation = match &tool.backing {
        Some(Backing::Command(command)) => {
            Invocation::Command(command::filled(command, input, &mut problems))
        }
        Some(Backing::Http(http)) => Invocation::Http(request::filled(http, input, &mut problems)),
        Some(Backing::Agent(agent)) => Invocation::Agent(AgentInvocation {
            prompt: agent.prompt.as_ref().and_then(|prompt| {
                let filled = draft(prompt, input, Sink::Text);
                problems.keep(filled.map(|filled| Some(filled.unwrap_or_default())))
            }),
        }),
        Some(Backing::Builtin(Builtin::AttemptCompletion)) => {
            Invocation::Completion(value_at(input, "result"))
        }
        Some(Backing::Builtin(Builtin::NewTask(_))) => Invocation::Agent(AgentInvocation {
            prompt: Some(Draft(vec![Piece::Text(value_at(input, "task"))])),
        }),
        None => return Ok(None),
    };
    problems.or(Some(invocation))
}

/// What the `probe` of `tool` runs; none where it has none.
///
/// # Errors
/// The same as of [`invocation`].
pub(super) fn probe(tool: &Tool, input: &Input) -> Result<Option<CommandInvocation>, Vec<Detail>> {
    let Some(probe) = &tool.probe else {
        return Ok(None);
    };
    let mut problems = Problems::default();
    let filled = command::filled(probe, input, &mut problems);
    problems.or(Some(filled))
}

/// A value that the schema of a built-in tool asks for.
fn value_at(input: &Input, name: &str) -> String {
    let value = input.at(&[name.to_owned()]);
    value.map(|raw| text(raw.into())).unwrap_or_default()
}

/// What was found on the way, so that all of it is told at once.
#[derive(Default)]
struct Problems(pub(super) Vec<Detail>);

impl Problems {
    /// What was filled, unless there were problems.
    fn or<T>(mut self, filled: T) -> Result<T, Vec<Detail>> {
        if self.0.is_empty() {
            return Ok(filled);
        }
        self.0.dedup();
        Err(self.0)
    }

    /// The value, or none where there is a problem or the place is left out.
    fn keep<T>(&mut self, filled: Result<Option<T>, Detail>) -> Option<T> {
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
fn detail(path: &[String], message: impl Into<String>) -> Detail {
    Detail {
        path: pointer(path),
        message: message.into(),
    }
}

/// The template with every value in its place; none where an optional one is missing.
fn draft(template: &Template, input: &Input, sink: Sink) -> Result<Option<Draft>, Detail> {
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
fn plain(template: &Template, input: &Input, sink: Sink) -> Result<Option<String>, Detail> {
    Ok(draft(template, input, sink)?.map(|draft| draft.to_string()))
}

fn push(draft: &mut Draft, text: &str) {
    if let Some(Piece::Text(last)) = draft.0.last_mut() {
        last.push_str(text);
    } else if !text.is_empty() {
        draft.0.push(Piece::Text(text.to_owned()));
    }
}

/// The value at `path`. An optional one that is missing or `null` is none.
fn found<'i>(
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
fn text(value: Json<'_>) -> String {
    let text = value.text();
    text.map_or_else(|| value.get().to_owned(), Cow::into_owned)
}
