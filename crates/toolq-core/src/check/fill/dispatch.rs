//! A tool's templates and an input → what the call runs. A value becomes part of exactly one argument, variable,
//! header, pair or JSON value; it is never split, never looked into for places, and never put where it could be read as
//! something else. Nothing of the environment is known here.

#[cfg(test)]
mod tests;

use crate::check::fill::command;
use crate::check::fill::request;
use crate::check::fill::values::{Problems, draft, text};
use crate::json::Input;
use crate::template::Sink;
use crate::types::{
    AgentInvocation, Backing, Builtin, CommandInvocation, Detail, Draft, Invocation, Piece, Tool,
};

/// What a call of `tool` runs; none where it has no backing.
///
/// # Errors
/// Every value that is missing or can't stand where the tool puts it.
pub(crate) fn invocation(tool: &Tool, input: &Input) -> Result<Option<Invocation>, Vec<Detail>> {
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
pub(crate) fn probe(tool: &Tool, input: &Input) -> Result<Option<CommandInvocation>, Vec<Detail>> {
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
