//! Resolves the author's texts for the model into templates over `{tool}`, `{error}`, `{timeout}` and `{details}`.

use crate::template::{MarkKind, VariableMode, parse_with_marks};
use crate::text::suggest_name;
use crate::tools_file::keys::MessagesFile;
use crate::tools_file::resolve::diagnostics::Diagnostics;
use crate::tools_file::spanned::{Field, Spanned};
use crate::types::{MessageKey, MessageTemplates, Template, TemplatePart};

/// The placeholders that a text may contain.
const MESSAGE_PLACEHOLDERS: [&str; 4] = ["tool", "error", "timeout", "details"];

/// Returns the templates of the texts in `file`.
pub(crate) fn resolve_messages(
    file: &Field<MessagesFile>,
    diagnostics: &mut Diagnostics<'_>,
) -> MessageTemplates {
    let Some(file) = file.value() else {
        return MessageTemplates::new();
    };
    let texts = [
        (MessageKey::Timeout, &file.timeout),
        (MessageKey::Failed, &file.failed),
        (MessageKey::Unavailable, &file.unavailable),
        (MessageKey::RateLimited, &file.rate_limited),
        (MessageKey::InvalidInput, &file.invalid_input),
        (MessageKey::UnknownTool, &file.unknown_tool),
        (MessageKey::AgentFailed, &file.agent_failed),
        (MessageKey::MaxTurns, &file.max_turns),
        (MessageKey::Paused, &file.paused),
        (MessageKey::NeedsApproval, &file.needs_approval),
        (MessageKey::Denied, &file.denied),
        (MessageKey::NotExecuted, &file.not_executed),
        (MessageKey::Interrupted, &file.interrupted),
        (MessageKey::InDoubt, &file.in_doubt),
        (MessageKey::EmptyOutput, &file.empty_output),
        (MessageKey::AlreadyDone, &file.already_done),
    ];
    let given = texts
        .into_iter()
        .filter_map(|(key, text)| Some((key, text.spanned()?)));
    given
        .map(|(key, text)| {
            check_message(text, diagnostics);
            (
                key,
                parse_with_marks(&text.value, VariableMode::Literal).template,
            )
        })
        .collect()
}

/// Returns the author's wording of the built-in tools, which has no placeholders.
pub(crate) fn resolve_builtin_wording(file: &Field<MessagesFile>) -> MessageTemplates {
    let Some(file) = file.value() else {
        return MessageTemplates::new();
    };
    let completion = file.attempt_completion.value();
    let new_task = file.new_task.value();
    let read_output = file.read_output.value();
    let texts = [
        (
            MessageKey::CompletionDescription,
            completion.map(|it| &it.description),
        ),
        (
            MessageKey::CompletionResult,
            completion.map(|it| &it.result),
        ),
        (
            MessageKey::NewTaskDescription,
            new_task.map(|it| &it.description),
        ),
        (MessageKey::NewTaskAgent, new_task.map(|it| &it.agent)),
        (MessageKey::NewTaskTask, new_task.map(|it| &it.task)),
        (
            MessageKey::ReadOutputDescription,
            read_output.map(|it| &it.description),
        ),
        (MessageKey::ReadOutputId, read_output.map(|it| &it.id)),
        (
            MessageKey::ReadOutputOffset,
            read_output.map(|it| &it.offset),
        ),
        (MessageKey::ReadOutputLimit, read_output.map(|it| &it.limit)),
        (
            MessageKey::ReadOutputPattern,
            read_output.map(|it| &it.pattern),
        ),
    ];
    let given = texts
        .into_iter()
        .filter_map(|(key, text)| Some((key, text?.value()?)));
    given
        .map(|(key, text)| (key, Template::from_text(text)))
        .collect()
}

/// Refuses a wording of the built-in tools among the messages of one tool.
pub(crate) fn refuse_builtin_wording(
    file: &Field<MessagesFile>,
    diagnostics: &mut Diagnostics<'_>,
) {
    let Some(file) = file.value() else {
        return;
    };
    let spans = [
        file.attempt_completion.spanned().map(|it| it.key_span),
        file.new_task.spanned().map(|it| it.key_span),
        file.read_output.spanned().map(|it| it.key_span),
    ];
    for span in spans.into_iter().flatten() {
        diagnostics.error(
            span,
            "a tool can't word a built-in tool",
            "not a text of this tool",
            "write it under the `messages` at the top level",
        );
    }
}

fn check_message(text: &Spanned<String>, diagnostics: &mut Diagnostics<'_>) {
    let parsed = parse_with_marks(&text.value, VariableMode::Literal);
    for mark in parsed.marks {
        let MarkKind::Part(index) = mark.kind else {
            continue;
        };
        let source = &text.value[mark.range.clone()];
        let name = match &parsed.template.parts[index] {
            TemplatePart::Value {
                path,
                optional: false,
                splat: false,
            } => path.join("."),
            _ => String::new(),
        };
        if MESSAGE_PLACEHOLDERS.contains(&name.as_str()) {
            continue;
        }
        let hint = match suggest_name(&name, MESSAGE_PLACEHOLDERS) {
            Some(near) => format!("did you mean `{{{near}}}`?"),
            None => format!(
                "use `{{tool}}`, `{{error}}`, `{{timeout}}` or `{{details}}`; write `{{{source}` if you mean the text `{source}`"
            ),
        };
        let span = diagnostics.span_within(text, &mark.range);
        diagnostics.error(
            span,
            format!("messages have no placeholder `{source}`"),
            "unknown",
            hint,
        );
    }
}
