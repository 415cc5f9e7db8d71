//! An outcome → what a model reads of it: a result as it is; else what happened, what it wrote, and a hint from which
//! the model can go on. An author's own text takes the place of all three.

#[cfg(test)]
mod tests;

use std::borrow::Cow;

use serde_json::value::{RawValue, to_raw_value};

use crate::answer::texts::agent;
use crate::answer::texts::command;
use crate::answer::texts::error_text::Account;
use crate::answer::texts::halted;
use crate::answer::texts::http;
use crate::answer::texts::leftovers;
use crate::answer::texts::limits;
use crate::answer::texts::rejected;
use crate::answer::texts::truncation;
use crate::text::{clipped, format_duration};
use crate::types::{
    Answer, Call, Content, Doubt, Ending, MessageKey, Messages, Outcome, Part, Template, Tool,
};
use redact::Mask;

/// What begins the last line.
const HINT: &str = "Hint: ";

/// Characters of a name that a model made up.
const MAX_NAME: usize = 100;

/// The answer to `call`, secrets masked. `tool` is none where no tool has the name that it asked for; `words` are the
/// author's own texts for it.
pub fn answer(
    call: &Call,
    tool: Option<&Tool>,
    outcome: &Outcome,
    words: &Messages,
    mask: &Mask,
) -> Answer {
    let content = match outcome {
        Outcome::Succeeded {
            content, captured, ..
        } => truncation::marked(content, captured, tool),
        Outcome::Recalled(recalled) => recalled.content.clone(),
        _ => Content::Text(text(call, tool, outcome, words)),
    };
    let content = leftovers::told(content, outcome, tool);
    Answer {
        tool_use_id: call.id.clone(),
        tool_name: call.name.clone(),
        content: masked(content, mask),
        is_error: outcome.is_error(),
    }
}

fn text(call: &Call, tool: Option<&Tool>, outcome: &Outcome, words: &Messages) -> String {
    let name = clipped(&call.name, MAX_NAME);
    let account = account(&name, tool, outcome);
    if let Some(template) = words.get(&key(outcome)) {
        return filled(template, &name, outcome, tool, &account);
    }
    let hint = format!("{HINT}{}", account.hint);
    joined([account.error.as_str(), &account.details, &hint])
}

/// What is told to a model, without the hint that is meant for it alone.
pub fn without_hint(text: &str) -> &str {
    match text.rsplit_once('\n') {
        Some((rest, last)) if last.starts_with(HINT) => rest,
        _ => text,
    }
}

/// The parts that are not empty, each on lines of its own.
pub(crate) fn joined<const N: usize>(parts: [&str; N]) -> String {
    let parts = parts.map(|part| part.trim_end_matches('\n'));
    let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    parts.join("\n")
}

fn account(name: &str, tool: Option<&Tool>, outcome: &Outcome) -> Account {
    match outcome {
        Outcome::Succeeded { .. } | Outcome::Recalled(_) => Account::default(),
        Outcome::Failed {
            output,
            stderr,
            captured,
            ending,
        } => {
            let output = truncation::shown(output, captured, tool);
            let account = match ending {
                Ending::Exit(code) => command::exited(*code, &output, stderr),
                Ending::Signal(signal) => command::signalled(*signal, &output, stderr),
                Ending::Limit(limit) => command::over(*limit, tool, &output, stderr),
                Ending::Http(status) => http::status(tool, *status, &output),
                Ending::Answered | Ending::Unfinished => Account::default(),
            };
            match limits::suspected(tool, *ending, stderr) {
                Some(limit) => account.with_hint(limits::suspicion(limit, tool)),
                None => account,
            }
        }
        Outcome::BadOutput {
            problem,
            output,
            stderr,
            captured,
            ..
        } => command::bad_output(
            name,
            problem,
            &truncation::shown(output, captured, tool),
            stderr,
        ),
        Outcome::TimedOut {
            limit,
            idle,
            output,
            stderr,
            captured,
        } => {
            let output = truncation::shown(output, captured, tool);
            command::timed_out(name, tool.filter(|_| !idle), *limit, &output, stderr)
        }
        Outcome::NotStarted(fault) => command::not_started(fault),
        Outcome::Transport(transport) => http::transport(tool, transport),
        Outcome::InDoubt {
            doubt,
            output,
            captured,
        } => http::in_doubt(name, doubt)
            .with_details(truncation::shown(output, captured, tool).into_owned()),
        Outcome::AgentFailed {
            fault,
            output,
            captured,
        } => agent::failed(name, fault, &truncation::shown(output, captured, tool)),
        Outcome::MissingVariable(_)
        | Outcome::NoBacking
        | Outcome::LogRefused(_)
        | Outcome::Broken(_) => rejected::unable(name, outcome),
        Outcome::Cancelled {
            by,
            output,
            stderr,
            captured,
        } => {
            let output = truncation::shown(output, captured, tool);
            rejected::cancelled(by, tool, command::until_then(&output, stderr))
        }
        Outcome::Interrupted {
            by,
            output,
            stderr,
            captured,
        } => {
            let output = truncation::shown(output, captured, tool);
            halted::interrupted(*by, tool, command::until_then(&output, stderr))
        }
        Outcome::NotExecuted(cause) => rejected::not_executed(cause),
        Outcome::Paused { failures } => rejected::paused(name, *failures),
        Outcome::Rejected(rejection) => rejected::rejected(name, rejection),
    }
}

/// Under which key of `messages` an author words this outcome.
fn key(outcome: &Outcome) -> MessageKey {
    match outcome {
        Outcome::TimedOut { .. } => MessageKey::Timeout,
        Outcome::Failed {
            ending: Ending::Http(status),
            ..
        } => http::key(*status),
        Outcome::Succeeded { .. }
        | Outcome::Recalled(_)
        | Outcome::Failed { .. }
        | Outcome::BadOutput { .. }
        | Outcome::Broken(_) => MessageKey::Failed,
        Outcome::AgentFailed { .. } => MessageKey::AgentFailed,
        Outcome::NotStarted(_)
        | Outcome::Transport(_)
        | Outcome::MissingVariable(_)
        | Outcome::NoBacking => MessageKey::Unavailable,
        Outcome::LogRefused(_) | Outcome::NotExecuted(_) => MessageKey::NotExecuted,
        Outcome::Cancelled { .. } | Outcome::Interrupted { .. } => MessageKey::Interrupted,
        Outcome::InDoubt { .. } => MessageKey::InDoubt,
        Outcome::Paused { .. } => MessageKey::Paused,
        Outcome::Rejected(rejection) => rejected::key(rejection.reason),
    }
}

/// An author's text; what is put into it is never looked at again.
fn filled(
    template: &Template,
    name: &str,
    outcome: &Outcome,
    tool: Option<&Tool>,
    account: &Account,
) -> String {
    let limit = match outcome {
        Outcome::TimedOut { limit, .. }
        | Outcome::InDoubt {
            doubt: Doubt::TimedOut(limit),
            ..
        } => Some(*limit),
        _ => tool.map(|tool| tool.timeout.after),
    };
    let value = |key: &str| match key {
        "tool" => name.to_owned(),
        "error" => account.error.clone(),
        "details" => account.details.clone(),
        "timeout" => limit.map(format_duration).unwrap_or_default(),
        _ => String::new(),
    };
    let parts = template.parts.iter().map(|part| match part {
        Part::Text(text) => text.clone(),
        Part::Value { path, .. } => value(&path.join(".")),
        Part::Env { name, .. } => format!("${{{name}}}"),
    });
    parts.collect()
}

fn masked(content: Content, mask: &Mask) -> Content {
    match content {
        Content::Text(text) => Content::Text(match mask.text(&text) {
            Cow::Borrowed(_) => text,
            Cow::Owned(masked) => masked,
        }),
        Content::Blocks(blocks) => Content::Blocks(
            blocks
                .into_iter()
                .filter_map(|block| masked_block(block, mask))
                .collect(),
        ),
    }
}

/// A block whose masked text is no JSON any more is left out.
fn masked_block(block: Box<RawValue>, mask: &Mask) -> Option<Box<RawValue>> {
    match mask.text(block.get()) {
        Cow::Borrowed(_) => Some(block),
        Cow::Owned(masked) => RawValue::from_string(masked).ok(),
    }
}

/// A text block of Anthropic's form.
pub(crate) fn text_block(text: &str) -> Option<Box<RawValue>> {
    to_raw_value(&serde_json::json!({"type": "text", "text": text})).ok()
}
