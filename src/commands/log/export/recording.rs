//! A session log as a recording in the form of a vendor's API.

use std::path::Path;

use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};

use crate::commands::log::export::WriteLine;
use crate::commands::log::log_files::warn_torn;
use crate::context::CommandContext;
use crate::input::files;
use crate::output::CommandError;
use toolq_core::answer::render_answers;
use toolq_core::json::{Input, expect_json};
use toolq_core::transcript::{InputError, Recording, invalid_input_object};
use toolq_core::types::{AnswerForm, Call, CallAnswer, CallKind, CallReport, Dialect};

/// The API whose messages a recording has.
#[derive(Debug, Clone, Copy)]
pub(super) enum RecordingForm {
    Messages,
    OpenAiChat,
    OpenAiResponses,
}

impl RecordingForm {
    fn of_answers(self) -> AnswerForm {
        match self {
            Self::Messages => AnswerForm::Message,
            Self::OpenAiChat => AnswerForm::OpenAiChat,
            Self::OpenAiResponses => AnswerForm::OpenAiResponses,
        }
    }
}

/// Writes a line with the calls of each turn of a log, and a line with their results.
///
/// # Errors
/// The file isn't a session log or is damaged, or a line can't be written.
pub(super) fn export_recording(
    log: &Path,
    form: RecordingForm,
    context: &CommandContext,
    write_line: &mut WriteLine<'_>,
) -> Result<(), CommandError> {
    let source = files::open_source(log)?;
    let recording = Recording::read(source, Some(Dialect::Toolq), u64::MAX)?;
    let (recording, torn_end) = files::verify_session_log(recording, log)?;
    if let Some(torn_end) = torn_end {
        warn_torn(log, &torn_end, context);
    }
    let mut exported = 0;
    for number in 0..recording.len() {
        let turn = recording.turn(number, true)?;
        if turn.calls.is_empty() {
            continue;
        }
        let mut answers = Vec::with_capacity(turn.calls.len());
        for call in &turn.calls {
            answers.extend(recorded_answer(&recording, number, call)?);
        }
        write_line(&calls_line(form, &turn.calls))?;
        if !answers.is_empty() {
            write_line(&render_answers(form.of_answers(), &answers))?;
        }
        exported += 1;
    }
    if exported == 0 {
        let message = format!("{} has no calls to export", log.display());
        return Err(CommandError::usage(message));
    }
    Ok(())
}

/// Returns what the model got for a call, or `None` if the log has no result.
fn recorded_answer(
    recording: &Recording,
    turn: usize,
    call: &Call,
) -> Result<Option<CallAnswer>, InputError> {
    let reply = recording.reply(turn, call.position)?;
    Ok(reply.map(|reply| CallAnswer {
        tool_use_id: call.id.clone(),
        tool_name: call.name.to_string(),
        content: reply.result.content,
        is_error: reply.result.is_error.unwrap_or_default(),
        for_clients: None,
        report: CallReport::default(),
        has_number_id: false,
        kind: CallKind::Function,
    }))
}

/// Returns the model's message with the calls. Inputs keep their digits and the order of their keys.
fn calls_line(form: RecordingForm, calls: &[Call]) -> String {
    let calls = calls.iter();
    let line = match form {
        RecordingForm::Messages => {
            let content = calls.map(|call| ToolUseBlock {
                kind: "tool_use",
                id: &call.id,
                name: &call.name,
                input: input_object(call),
            });
            serde_json::to_string(&AssistantMessage {
                role: "assistant",
                content: content.collect(),
            })
        }
        RecordingForm::OpenAiChat => {
            let call = |call: &Call| {
                let function = json!({"name": *call.name, "arguments": input_text(call)});
                json!({"id": call.id, "type": "function", "function": function})
            };
            let calls: Vec<Value> = calls.map(call).collect();
            serde_json::to_string(&json!({"role": "assistant", "tool_calls": calls}))
        }
        RecordingForm::OpenAiResponses => {
            let item = |call: &Call| {
                json!({"type": "function_call", "call_id": call.id, "name": *call.name,
                    "arguments": input_text(call)})
            };
            serde_json::to_string(&calls.map(item).collect::<Vec<Value>>())
        }
    };
    expect_json(line)
}

#[derive(Serialize)]
struct AssistantMessage<'a> {
    role: &'static str,
    content: Vec<ToolUseBlock<'a>>,
}

#[derive(Serialize)]
struct ToolUseBlock<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    id: &'a str,
    name: &'a str,
    input: Box<RawValue>,
}

/// Returns an input, or an object with the reason why it wasn't one. The API refuses any other value.
fn input_object(call: &Call) -> Box<RawValue> {
    match &call.input {
        Ok(input) => input.as_raw().to_owned(),
        Err(fault) => expect_json(to_raw_value(&invalid_input_object(&fault.to_string()))),
    }
}

/// Returns the text of an input, or `null` if it wasn't an object.
fn input_text(call: &Call) -> &str {
    call.input.as_ref().map_or("null", Input::text)
}
