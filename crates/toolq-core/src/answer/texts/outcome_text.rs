//! Renders what a model reads about an outcome: a successful result verbatim; otherwise what happened, the output, and
//! a hint about what to do next. A text under `messages` in tools.yaml replaces all three.

#[cfg(test)]
mod tests;

use std::borrow::Cow;

use serde_json::value::{RawValue, to_raw_value};

use crate::answer::texts::failure_cause::{
    exceeded_limit, failure_cause, fill_message, message_key,
};
use crate::answer::texts::truncation::{self, OutputReader};
use crate::answer::texts::{
    ErrorText, MAYBE_DONE_HINT, agent, command, http, join_lines, limits, partial_output_text,
    rejected, text_block,
};
use crate::text::truncate;
use crate::types::{
    Backing, Call, CallAnswer, CallConflict, CallEnding, CallReport, DoubtCause, Leftovers,
    MessageKey, MessageTemplates, Outcome, OutputKind, Reach, RestoredResult, ResultContent,
    StderrUse, Tool,
};
use redact::Mask;

/// The start of the last line.
const HINT_PREFIX: &str = "Hint: ";

/// The hint of a call that had its effect, and failed only after that.
const DONE_HINT: &str = "its work is done, only what it printed is wrong. Don't call it again for the same, and tell the user.";

/// The result of a call that succeeded without any output.
const EMPTY_OUTPUT: &str = "(no output)";

/// Maximum length of a name made up by a model, in characters.
const MAX_NAME_CHARS: usize = 100;

/// What the answers to calls have in common.
#[derive(Debug, Clone, Copy)]
pub struct AnswerWording<'a> {
    /// The texts that replace the built-in ones.
    pub messages: &'a MessageTemplates,
    /// Masks the secrets.
    pub mask: &'a Mask,
    /// The name of the tool that reads outputs that were cut, if there is one and it knows the call.
    pub output_reader: Option<&'a str>,
}

/// Builds the result of `call`, with secrets masked. `tool` is `None` if no tool has the requested name.
pub fn build_answer(
    call: &Call,
    tool: Option<&Tool>,
    outcome: &Outcome,
    wording: AnswerWording<'_>,
) -> CallAnswer {
    let AnswerWording { messages, mask, .. } = wording;
    let reader = wording.output_reader.map(|reader| OutputReader {
        tool_name: reader,
        call_id: &call.id,
    });
    let content = match outcome {
        Outcome::Succeeded { content, .. } if is_empty_text(content) => {
            ResultContent::Text(empty_output_text(&call.name, tool, messages))
        }
        Outcome::Succeeded {
            content, captured, ..
        } => truncation::mark_content(content, captured, tool, reader),
        Outcome::Restored(restored) => restored_content(restored, &call.name, tool, messages),
        _ => ResultContent::Text(recorded_doubt(outcome).map_or_else(
            || render_error(call, tool, outcome, messages, reader),
            str::to_owned,
        )),
    };
    let content = append_notice(content, outcome, tool);
    let for_clients = match outcome {
        Outcome::Succeeded { for_clients, .. } => for_clients.clone(),
        _ => None,
    };
    let failure = || {
        mask.apply(&describe_failure(call, tool, outcome))
            .into_owned()
    };
    CallAnswer {
        tool_use_id: call.id.clone(),
        has_number_id: call.has_number_id,
        kind: call.kind,
        tool_name: call.name.to_string(),
        content: mask_content(content, mask),
        is_error: outcome.is_error(),
        for_clients,
        report: CallReport {
            status: outcome.status(),
            error: outcome.is_error().then(failure),
            ..CallReport::default()
        },
    }
}

/// Returns what a model has read about a call that an earlier run left in doubt.
fn recorded_doubt(outcome: &Outcome) -> Option<&str> {
    match outcome {
        Outcome::InDoubt {
            cause: DoubtCause::EndNotLogged(Some(start)),
            ..
        } => start.answer.as_deref(),
        _ => None,
    }
}

/// Returns why a call failed, in one sentence: the cause if it is known, or else how the call ended.
pub fn describe_failure(call: &Call, tool: Option<&Tool>, outcome: &Outcome) -> String {
    failure_cause(outcome).unwrap_or_else(|| {
        let name = truncate(&call.name, MAX_NAME_CHARS);
        let ErrorText { error, .. } = error_text(&name, tool, outcome, None);
        error.trim_end_matches(['.', ':']).to_owned()
    })
}

/// Returns what a model reads instead of an empty text: it could take an empty result for a failure of the API.
pub fn empty_output_text(name: &str, tool: Option<&Tool>, messages: &MessageTemplates) -> String {
    let Some(template) = messages.get(&MessageKey::EmptyOutput) else {
        return EMPTY_OUTPUT.to_owned();
    };
    let name = truncate(name, MAX_NAME_CHARS);
    let limit = tool.map(|tool| tool.timeout.after);
    fill_message(template, &name, limit, &ErrorText::default())
}

/// Returns what the caller of an agent reads if the agent used up its turns. `last_text` is its model's last text.
pub fn max_turns_text(tool: &Tool, max_turns: u32, last_text: &str) -> String {
    let turns = match max_turns {
        1 => "its only turn".to_owned(),
        turns => format!("its {turns} turns"),
    };
    let error = format!("the agent did not finish within {turns}");
    let note = match (tool.messages.get(&MessageKey::MaxTurns), last_text) {
        (Some(template), _) => {
            let limit = Some(tool.timeout.after);
            fill_message(template, &tool.name, limit, &ErrorText::new(error, ""))
        }
        (None, "") => format!("(T{} and returned no text.)", &error[1..]),
        (None, _) => format!("(T{}; this is its last message.)", &error[1..]),
    };
    join_lines([last_text, &note])
}

fn is_empty_text(content: &ResultContent) -> bool {
    matches!(content, ResultContent::Text(text) if text.is_empty())
}

fn render_error(
    call: &Call,
    tool: Option<&Tool>,
    outcome: &Outcome,
    messages: &MessageTemplates,
    reader: Option<OutputReader<'_>>,
) -> String {
    let name = truncate(&call.name, MAX_NAME_CHARS);
    let error_text = error_text(&name, tool, outcome, reader);
    if let Some(template) = messages.get(&message_key(outcome)) {
        let limit = exceeded_limit(outcome).or(tool.map(|tool| tool.timeout.after));
        return fill_message(template, &name, limit, &error_text);
    }
    let hint = format!("{HINT_PREFIX}{}", error_text.hint);
    join_lines([error_text.error.as_str(), &error_text.details, &hint])
}

fn hides_stderr(tool: Option<&Tool>) -> bool {
    let backing = tool.and_then(|tool| tool.backing.as_ref());
    matches!(backing, Some(Backing::Command(command)) if command.stderr == StderrUse::Never)
}

fn error_text(
    name: &str,
    tool: Option<&Tool>,
    outcome: &Outcome,
    reader: Option<OutputReader<'_>>,
) -> ErrorText {
    let error_text = explain_outcome(name, tool, outcome, reader);
    match hint_about_effect(tool, outcome) {
        // Whatever the cause, nobody should call it again just so.
        Some(hint) if http::is_write(tool) => error_text.with_hint(hint),
        _ => error_text,
    }
}

/// Returns what counts more than the cause of a failure, if the call may have had its effect.
fn hint_about_effect(tool: Option<&Tool>, outcome: &Outcome) -> Option<&'static str> {
    let is_open = match outcome {
        Outcome::BadOutput { .. } => return Some(DONE_HINT),
        // Its end says that it failed, but something that it ran was stopped in the middle.
        Outcome::Failed { ending, output, .. } => {
            outcome.reach() == Reach::Open
                || matches!(ending, CallEnding::ExitCode(129..=159))
                || limits::suspect_limit(tool, *ending, &output.stderr).is_some()
        }
        Outcome::TimedOut { .. } | Outcome::Canceled { .. } | Outcome::Interrupted { .. } => {
            outcome.reach() == Reach::Open
        }
        _ => false,
    };
    is_open.then_some(MAYBE_DONE_HINT)
}

fn explain_outcome(
    name: &str,
    tool: Option<&Tool>,
    outcome: &Outcome,
    reader: Option<OutputReader<'_>>,
) -> ErrorText {
    let (output, stderr) = match outcome.output() {
        Some(output) => (
            truncation::mark_text(&output.text, &output.captured, tool, reader),
            output.stderr.as_str(),
        ),
        None => (Cow::Borrowed(""), ""),
    };
    let stderr = if hides_stderr(tool) { "" } else { stderr };
    match outcome {
        Outcome::Succeeded { .. } | Outcome::Restored(_) => ErrorText::default(),
        Outcome::Failed { ending, .. } => explain_ending(tool, *ending, &output, stderr),
        Outcome::BadOutput { problem, .. } => {
            command::explain_bad_output(name, problem, tool, &output, stderr)
        }
        Outcome::TimedOut { limit, .. } => limits::explain_timeout(name, *limit, &output, stderr),
        Outcome::NotStarted(fault) => command::explain_spawn_error(fault),
        Outcome::TransportFailed(transport) => http::explain_transport_error(tool, transport),
        Outcome::InDoubt { cause: doubt, .. } => {
            let details = match doubt {
                DoubtCause::Interrupted(_) | DoubtCause::Canceled(_) | DoubtCause::ReaperKilled => {
                    partial_output_text(&output, stderr)
                }
                DoubtCause::EndNotLogged(Some(start)) => {
                    let earlier = start.earlier.as_ref().map(describe_earlier);
                    earlier.unwrap_or_default()
                }
                _ => output.into_owned(),
            };
            http::explain_in_doubt(name, doubt).with_details(details)
        }
        Outcome::AgentFailed { failure: fault, .. } => {
            agent::explain_agent_failure(name, fault, &output)
        }
        Outcome::OutputUnavailable(why) => truncation::explain(why),
        Outcome::MissingVariable(_)
        | Outcome::ToolDrifted(_)
        | Outcome::NoBacking
        | Outcome::LogRefused(_)
        | Outcome::InternalError(_) => rejected::explain_unable(name, tool, outcome),
        Outcome::Canceled {
            failed_tool: by, ..
        } => rejected::explain_canceled(by, partial_output_text(&output, stderr)),
        Outcome::Interrupted { cause: by, .. } => {
            rejected::explain_interrupted(*by, partial_output_text(&output, stderr))
        }
        Outcome::NotExecuted(cause) => rejected::explain_not_executed(cause),
        Outcome::Paused { failures } => rejected::explain_paused(name, *failures),
        Outcome::NeedsApproval => rejected::explain_missing_approval(name),
        Outcome::Conflict(conflict) => explain_conflict(name, conflict),
        Outcome::IsRunning => explain_is_running(name),
        Outcome::Denied { reason } => rejected::explain_denial(name, reason.as_deref()),
        Outcome::Rejected(rejection) => rejected::explain_rejection(name, rejection),
    }
}

/// Explains a program or a request that ended by itself and failed.
fn explain_ending(
    tool: Option<&Tool>,
    ending: CallEnding,
    output: &str,
    stderr: &str,
) -> ErrorText {
    let error_text = match ending {
        CallEnding::ExitCode(code) => command::explain_exit(code, tool, output, stderr),
        CallEnding::Signal(signal) => command::explain_signal(signal, output, stderr),
        CallEnding::LimitExceeded(limit) => {
            command::explain_exceeded_limit(limit, tool, output, stderr)
        }
        CallEnding::HttpStatus(status) | CallEnding::RedirectedStatus(status) => {
            http::explain_status(status, output)
        }
        CallEnding::ServerError => ErrorText::new(
            "The tool reported an error.",
            if output.is_empty() {
                "it doesn't say why. Tell the user."
            } else {
                "correct the input if the text above says how. Otherwise, tell the user."
            },
        )
        .with_details(output.to_owned()),
        CallEnding::Answered | CallEnding::Unfinished => ErrorText::default(),
    };
    match limits::suspect_limit(tool, ending, stderr) {
        Some(limit) => error_text.with_hint(limits::suspicion_hint(limit, tool)),
        None => error_text,
    }
}

// What a model reads about calls that the memory answers.

/// Longest input and longest result of an earlier call that a text repeats, in characters.
const MAX_REPEATED_CHARS: usize = 2_000;

/// Returns the result of an earlier call. If a call with another id gets it, a line says so.
fn restored_content(
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
fn explain_conflict(name: &str, conflict: &CallConflict) -> ErrorText {
    let details = describe_earlier(conflict);
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

fn describe_earlier(earlier: &CallConflict) -> String {
    let begin = |text: &str| match text.char_indices().nth(MAX_REPEATED_CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    };
    let result = earlier.result.as_deref();
    let result = result.map(|result| format!("\nIts result: {}", begin(result)));
    let (tool, input) = (&earlier.tool, begin(&earlier.input));
    format!(
        "The earlier call: {tool} {input}{}",
        result.unwrap_or_default()
    )
}

/// Explains that a call is running already.
fn explain_is_running(name: &str) -> ErrorText {
    ErrorText::new(
        format!(
            "Not executed: this call of {name} is running already, and its result has not come yet."
        ),
        "do not repeat it. Ask for its result later.",
    )
}

// Masks the secrets in a result.

/// Returns the content without secrets. A block that isn't JSON any more without them is left out.
fn mask_content(content: ResultContent, mask: &Mask) -> ResultContent {
    match content {
        ResultContent::Text(text) => ResultContent::Text(match mask.apply(&text) {
            Cow::Borrowed(_) => text,
            Cow::Owned(masked) => masked,
        }),
        ResultContent::Blocks(blocks) => ResultContent::Blocks(
            blocks
                .into_iter()
                .filter_map(|block| mask_block(block, mask))
                .collect(),
        ),
    }
}

/// Masks a block; drops it if the masked text is no longer JSON.
fn mask_block(block: Box<RawValue>, mask: &Mask) -> Option<Box<RawValue>> {
    match mask.apply(block.get()) {
        Cow::Borrowed(_) => Some(block),
        Cow::Owned(masked) => RawValue::from_string(masked).ok(),
    }
}

// Reports processes that a program left running: those whose output was cut off, and all of tools with `leftovers: report`.

/// Appends a notice about the processes that were killed.
fn append_notice(content: ResultContent, outcome: &Outcome, tool: Option<&Tool>) -> ResultContent {
    let captured = outcome.captured();
    let is_reported = tool.is_some_and(reports_leftovers);
    let killed = captured.filter(|_| is_reported);
    let notice = match killed.map_or(0, |captured| captured.killed_leftovers) {
        _ if captured.is_some_and(|captured| captured.was_printing) => {
            "[cut off here: a process that it left running was still printing, and was killed]"
                .to_owned()
        }
        0 => return content,
        1 => "[killed 1 process that it left running]".to_owned(),
        many => format!("[killed {many} processes that it left running]"),
    };
    let is_json = tool.is_some_and(|tool| tool.output == OutputKind::Json);
    match content {
        // JSON stays valid: the notice becomes a text block of its own.
        ResultContent::Text(text) if is_json && !outcome.is_error() => ResultContent::Blocks(
            [&text, &notice]
                .into_iter()
                .filter_map(|text| text_block(text))
                .collect(),
        ),
        ResultContent::Text(text) => {
            ResultContent::Text(format!("{}\n{notice}", text.trim_end_matches('\n')))
        }
        ResultContent::Blocks(mut blocks) => {
            blocks.extend(text_block(&notice));
            ResultContent::Blocks(blocks)
        }
    }
}

fn reports_leftovers(tool: &Tool) -> bool {
    matches!(&tool.backing, Some(Backing::Command(command)) if command.leftovers == Leftovers::Report)
}
