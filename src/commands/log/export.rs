//! `toolq log export`: turns a session log into a recording in the form of a vendor's API.

use std::path::Path;

use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};

use crate::args::{ExportFormat, LogExportArguments};
use crate::commands::log::log_files::{select_logs, warn_torn};
use crate::context::CommandContext;
use crate::input::files;
use crate::output::stdout;
use crate::output::{CommandError, Exit};
use toolq_core::answer::render_answers;
use toolq_core::json::{Input, expect_json};
use toolq_core::transcript::{InputError, Recording, invalid_input_object};
use toolq_core::types::{AnswerForm, Call, CallAnswer, CallReport, Dialect};

/// Prints a line with the calls of each turn, and a line with their results.
///
/// # Errors
/// A file isn't a session log or is damaged, or stdout can't be written.
pub fn export_logs(
    arguments: &LogExportArguments,
    context: &CommandContext,
) -> Result<Exit, CommandError> {
    for path in select_logs(&arguments.logs, context)? {
        let source = files::open_source(&path)?;
        let recording = Recording::read(source, Some(Dialect::Toolq), u64::MAX)?;
        let (recording, torn_end) = files::verify_session_log(recording, &path)?;
        if let Some(torn_end) = torn_end {
            warn_torn(&path, &torn_end, context);
        }
        export_recording(&recording, arguments.format, &path)?;
    }
    Ok(Exit::Ok)
}

fn export_recording(
    recording: &Recording,
    format: ExportFormat,
    path: &Path,
) -> Result<(), CommandError> {
    let mut exported = 0;
    for number in 0..recording.len() {
        let turn = recording.turn(number, true)?;
        if turn.calls.is_empty() {
            continue;
        }
        let mut answers = Vec::with_capacity(turn.calls.len());
        for call in &turn.calls {
            answers.extend(recorded_answer(recording, number, call)?);
        }
        stdout::write_line(&calls_line(format, &turn.calls))?;
        if !answers.is_empty() {
            stdout::write_line(&render_answers(answer_form(format), &answers))?;
        }
        exported += 1;
    }
    if exported == 0 {
        let message = format!("{} has no calls to export", path.display());
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
    }))
}

fn answer_form(format: ExportFormat) -> AnswerForm {
    match format {
        ExportFormat::Messages => AnswerForm::Message,
        ExportFormat::OpenaiChat => AnswerForm::OpenAiChat,
        ExportFormat::OpenaiResponses => AnswerForm::OpenAiResponses,
    }
}

/// Returns the model's message with the calls. Inputs keep their digits and the order of their keys.
fn calls_line(format: ExportFormat, calls: &[Call]) -> String {
    let calls = calls.iter();
    let line = match format {
        ExportFormat::Messages => {
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
        ExportFormat::OpenaiChat => {
            let call = |call: &Call| {
                let function = json!({"name": *call.name, "arguments": input_text(call)});
                json!({"id": call.id, "type": "function", "function": function})
            };
            let calls: Vec<Value> = calls.map(call).collect();
            serde_json::to_string(&json!({"role": "assistant", "tool_calls": calls}))
        }
        ExportFormat::OpenaiResponses => {
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
