//! A call that a person types: the tool's name as an argument, its input as an argument or on stdin.

use std::collections::BTreeMap;
use std::io::{self, IsTerminal as _, Read as _};
use std::sync::Arc;

use serde::de::IgnoredAny;
use serde_json::value::RawValue;

use crate::output::CommandError;
use redact::Mask;
use toolq_core::json::{Input, MAX_INPUT_BYTES};
use toolq_core::text::to_millis;
use toolq_core::types::{
    AgentUsage, Call, CallKind, CallRef, CheckedCall, Event, RejectionReason, ReportedUsage,
    Status, Tool, Verdict,
};

/// Returns the call of `tool` with this input, or the one on stdin: a JSON object, or the text of the tool's only string. If there is no text and
/// the tool requires no properties, the input is empty. `command` is how the command line of the call begins, for hints.
///
/// # Errors
/// stdin is a terminal, or can't be read, or the text isn't an input for this tool.
pub(super) fn read_call(
    tool: &Tool,
    argument: Option<&str>,
    command: &str,
) -> Result<Call, CommandError> {
    let hint = match argument {
        Some(_) => format!("write it as in `{command} '{}'`", example(tool)),
        None => format!("pipe it in: `echo '{}' | {command}`", example(tool)),
    };
    let text = match argument {
        Some(text) => text.to_owned(),
        None if !io::stdin().is_terminal() => read_stdin()?,
        None if requires_nothing(tool) => "{}".to_owned(),
        None => {
            let message = "no input: stdin is a terminal";
            return Err(CommandError::usage(message).with_hint(hint));
        }
    };
    Ok(Call {
        turn: 0,
        position: 0,
        id: format!("toolq_{}", tool.name),
        name: tool.name.as_str().into(),
        input: Ok(parse_input(tool, &text).map_err(|error| {
            // JSON that breaks a limit, for example by a duplicate key, needs no hint: the error says what is wrong.
            let is_json = serde_json::from_str::<IgnoredAny>(&text).is_ok();
            let is_object = is_json && text.trim_start().starts_with('{');
            if is_object {
                error
            } else {
                error.with_hint(hint)
            }
        })?),
        parent: None,
        has_number_id: false,
        kind: CallKind::Function,
    })
}

/// Reads stdin to its end, or to the largest input that can be valid.
fn read_stdin() -> Result<String, CommandError> {
    let mut text = String::new();
    io::stdin()
        .take(MAX_INPUT_BYTES as u64 + 1)
        .read_to_string(&mut text)
        .map_err(|error| CommandError::usage(format!("stdin can't be read: {error}")))?;
    Ok(text)
}

fn parse_input(tool: &Tool, text: &str) -> Result<Input, CommandError> {
    let is_plain_text = !text.trim().is_empty() && !text.trim_start().starts_with('{');
    let text = match only_string(tool) {
        Some(property) if is_plain_text => {
            serde_json::json!({ property: text.trim_end() }).to_string()
        }
        _ if text.trim().is_empty() && requires_nothing(tool) => "{}".to_owned(),
        None if is_plain_text => {
            let name = &tool.name;
            return Err(CommandError::usage(format!(
                "the input of {name} is a JSON object, and this is none"
            )));
        }
        _ if text.trim().is_empty() => return Err(CommandError::usage("the input is empty")),
        _ => text.to_owned(),
    };
    Input::parse(&text).map_err(CommandError::usage)
}

fn requires_nothing(tool: &Tool) -> bool {
    let schema = tool.input_schema();
    schema["required"].as_array().is_none_or(Vec::is_empty)
}

/// Returns the property that a plain text sets: the only required one, if it is a string, or else the only one.
fn only_string(tool: &Tool) -> Option<&str> {
    let schema = tool.input_schema();
    let properties = schema["properties"].as_object()?;
    let required = schema["required"].as_array().map_or(&[][..], Vec::as_slice);
    let name = match required {
        [name] => name.as_str()?,
        [] if properties.len() == 1 => properties.keys().next()?,
        _ => return None,
    };
    (properties.get(name)?["type"] == "string").then_some(name)
}

/// Returns an example of an input with the properties that this tool requires.
fn example(tool: &Tool) -> String {
    if only_string(tool).is_some() {
        return "TEXT".to_owned();
    }
    let schema = tool.input_schema();
    let required = schema["required"].as_array().into_iter().flatten();
    let required = required.filter_map(|property| property.as_str());
    let members: Vec<String> = required
        .map(|property| {
            let is_string = schema["properties"][property]["type"] == "string";
            format!("\"{property}\":{}", if is_string { "\"…\"" } else { "…" })
        })
        .collect();
    format!("{{{}}}", members.join(","))
}

/// Returns an error with every problem of the input if the call is rejected.
pub(super) fn check_accepted(checked: &CheckedCall) -> Result<(), CommandError> {
    let Verdict::Rejected(rejection) = &checked.verdict else {
        return Ok(());
    };
    let problems = rejection
        .details
        .iter()
        .map(|detail| match detail.path.as_str() {
            "" => detail.message.clone(),
            path => format!("{path}: {}", detail.message),
        });
    let problems: Vec<String> = problems.collect();
    // What leads nowhere in the input may be about the tool or the root.
    let is_about_input = rejection
        .details
        .iter()
        .any(|detail| !detail.path.is_empty());
    let name = &checked.call.name;
    let what = match rejection.reason {
        RejectionReason::UnusableTool => format!("{name} can't run"),
        RejectionReason::PathOutsideRoot if !is_about_input => format!("{name} can't run"),
        _ => format!("invalid input for {name}"),
    };
    Err(CommandError::usage(format!(
        "{what}: {}",
        problems.join("; ")
    )))
}

// Collects an agent's conversation and usage for the final output.

/// Collects what the final output needs from the events of a run.
pub(super) struct AgentTranscript {
    mask: Arc<Mask>,
    pub(super) conversation: Vec<Box<RawValue>>,
    /// The status of the agent's call.
    pub(super) status: Status,
    pub(super) duration_ms: u64,
    pub(super) agent_usage: AgentUsage,
    /// Usage by model, including that of agents it called.
    pub(super) total_usage: BTreeMap<String, ReportedUsage>,
}

impl AgentTranscript {
    pub(super) fn new(mask: Arc<Mask>) -> Self {
        Self {
            mask,
            conversation: Vec::new(),
            status: Status::NotExecuted,
            duration_ms: 0,
            agent_usage: AgentUsage::default(),
            total_usage: BTreeMap::new(),
        }
    }

    /// Adds a message to the conversation, unless it is one of an agent that the agent called.
    fn record_message(&mut self, call: &CallRef, message: &RawValue) {
        if call.parent.is_none() {
            // Messages to the model may contain secrets.
            let masked = self.mask.apply_to_json(message.get()).into_owned();
            self.conversation.extend(RawValue::from_string(masked));
        }
    }

    pub(super) fn record_event(&mut self, event: &Event<'_>) {
        match event {
            Event::AgentMessage { call, message, .. } => self.record_message(call, message),
            Event::Finished {
                call,
                outcome,
                duration,
                agent_usage,
                ..
            } => {
                let usage_by_model = agent_usage.iter().flat_map(|agent| &agent.usage);
                for (model, usage) in usage_by_model {
                    *self.total_usage.entry(model.clone()).or_default() += *usage;
                }
                if call.parent.is_none() {
                    self.agent_usage = agent_usage.cloned().unwrap_or_default();
                    for name in &mut self.agent_usage.tools_called {
                        *name = self.mask.apply(name).into_owned();
                    }
                    self.status = outcome.status();
                    self.duration_ms = to_millis(*duration);
                }
            }
            _ => {}
        }
    }
}
