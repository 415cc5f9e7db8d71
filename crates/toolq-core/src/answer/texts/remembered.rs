//! What a model reads about calls that the memory answers.

use serde_json::value::to_raw_value;

use crate::answer::texts::error_text::ErrorText;
use crate::answer::texts::message_text::fill_message;
use crate::text::truncate;
use crate::types::{
    CallConflict, MessageKey, MessageTemplates, RestoredResult, ResultContent, Tool,
};

/// Longest input and longest result of an earlier call that a text repeats, in characters.
const MAX_REPEATED_CHARS: usize = 2_000;

/// Returns the result of an earlier call. If a call with another id gets it, a line says so.
pub(crate) fn restored_content(
    restored: &RestoredResult,
    name: &str,
    tool: Option<&Tool>,
    messages: &MessageTemplates,
) -> ResultContent {
    let is_repeated = restored
        .source
        .as_ref()
        .is_some_and(|source| source.other_id.is_some());
    if !is_repeated {
        return restored.content.clone();
    }
    let line = match messages.get(&MessageKey::AlreadyDone) {
        Some(template) => {
            let limit = tool.map(|tool| tool.timeout.after);
            fill_message(template, name, limit, &ErrorText::default())
        }
        None => format!(
            "{name} has already done this, so it did not run again. The result of that call:"
        ),
    };
    match &restored.content {
        ResultContent::Text(text) => ResultContent::Text(format!("{line}\n{text}")),
        ResultContent::Blocks(blocks) => {
            let line = to_raw_value(&serde_json::json!({"type": "text", "text": line})).ok();
            ResultContent::Blocks(line.into_iter().chain(blocks.iter().cloned()).collect())
        }
    }
}

/// Explains that what names a call names another one.
pub(crate) fn explain_conflict(name: &str, conflict: &CallConflict) -> ErrorText {
    let input = truncate(&conflict.input, MAX_REPEATED_CHARS);
    let tool = &conflict.tool;
    let result = conflict
        .result
        .as_deref()
        .map_or_else(String::new, |result| {
            format!("\nIts result: {}", truncate(result, MAX_REPEATED_CHARS))
        });
    let details = format!("The earlier call: {tool} {input}{result}");
    if conflict.is_once {
        let error =
            format!("Not executed: {name} has already run for these values, with another input.");
        return ErrorText::new(error, "do not repeat the call unless the user wants it. If it is about something else, change the values that name it.")
            .with_details(details);
    }
    let error =
        "Not executed: the id of this call belongs to an earlier call with another tool or input.";
    ErrorText::new(error, "make the call again, with a new id.").with_details(details)
}

/// Explains that a call is running already.
pub(crate) fn explain_is_running(name: &str) -> ErrorText {
    ErrorText::new(
        format!(
            "Not executed: this call of {name} is running already, and its result has not come yet."
        ),
        "do not repeat it. Ask for its result later.",
    )
}
