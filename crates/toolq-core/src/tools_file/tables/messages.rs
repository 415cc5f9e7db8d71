//! `messages`: the author's texts for the model, templates over `{tool}`, `{error}`, `{timeout}` and `{details}`.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::template::{MarkKind, VariableMode, parse_with_marks};
use crate::text::suggest_name;
use crate::tools_file::context::Diagnostics;
use crate::tools_file::spanned::{Field, Spanned};
use crate::types::{MessageKey, MessageTemplates, Template, TemplatePart};

/// Texts for the model when a call fails or has nothing to say. They may use `{tool}`, `{error}`, `{timeout}` and `{details}`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(deny_unknown_fields)]
pub struct MessagesFile {
    /// The call timed out.
    pub timeout: Field<String>,
    /// The tool failed.
    pub failed: Field<String>,
    /// The program couldn't be started, or the server didn't respond.
    pub unavailable: Field<String>,
    /// The service refused the call because of too many requests.
    pub rate_limited: Field<String>,
    /// The input doesn't match the schema.
    pub invalid_input: Field<String>,
    /// There is no such tool.
    pub unknown_tool: Field<String>,
    /// An agent failed to produce an answer.
    pub agent_failed: Field<String>,
    /// An agent used up its turns: the note after its last text.
    pub max_turns: Field<String>,
    /// The tool failed too many times in a row.
    pub paused: Field<String>,
    /// The call needs an approval that nobody gave.
    pub needs_approval: Field<String>,
    /// Somebody was asked to approve the call, and said no.
    pub denied: Field<String>,
    /// The call did not run because an earlier one failed.
    pub not_executed: Field<String>,
    /// The run was interrupted.
    pub interrupted: Field<String>,
    /// A call of a `write` tool was interrupted, and it is unknown whether it took effect.
    pub in_doubt: Field<String>,
    /// The call succeeded with an empty text. Default: `(no output)`.
    pub empty_output: Field<String>,
    /// A tool with `once` has run for these values before: the line before the result of that call.
    pub already_done: Field<String>,
}

/// The placeholders that a text may contain.
const MESSAGE_PLACEHOLDERS: [&str; 4] = ["tool", "error", "timeout", "details"];

/// Returns the templates of the texts in `file`.
pub(crate) fn resolve_messages(
    file: &Field<MessagesFile>,
    diagnostics: &mut Diagnostics,
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
    texts
        .into_iter()
        .filter_map(|(key, text)| Some((key, resolve_message(text.spanned()?, diagnostics))))
        .collect()
}

fn resolve_message(text: &Spanned<String>, diagnostics: &mut Diagnostics) -> Template {
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
            (span, "unknown"),
            format!("messages have no placeholder `{source}`"),
            hint,
        );
    }
    parsed.template
}
