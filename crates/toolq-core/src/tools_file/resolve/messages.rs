//! The author's own texts for a model → templates over `{tool}`, `{error}`, `{timeout}` and `{details}`.

use crate::template::{MarkKind, Variables, parse};
use crate::text::nearest;
use crate::tools_file::keys::MessagesFile;
use crate::tools_file::resolve::diagnostics::Findings;
use crate::tools_file::spanned::{Placed, Setting};
use crate::types::{MessageKey, Messages, Part};

/// What a text may have in it.
const KNOWN: [&str; 4] = ["tool", "error", "timeout", "details"];

/// The texts given in `file`.
pub(crate) fn read(file: &Setting<MessagesFile>, findings: &mut Findings<'_>) -> Messages {
    let Some(file) = file.value() else {
        return Messages::new();
    };
    let texts = [
        (MessageKey::Timeout, &file.timeout),
        (MessageKey::Failed, &file.failed),
        (MessageKey::Unavailable, &file.unavailable),
        (MessageKey::RateLimited, &file.rate_limited),
        (MessageKey::InvalidInput, &file.invalid_input),
        (MessageKey::UnknownTool, &file.unknown_tool),
        (MessageKey::AgentFailed, &file.agent_failed),
        (MessageKey::Paused, &file.paused),
        (MessageKey::NotExecuted, &file.not_executed),
        (MessageKey::Interrupted, &file.interrupted),
        (MessageKey::InDoubt, &file.in_doubt),
    ];
    let given = texts
        .into_iter()
        .filter_map(|(key, text)| Some((key, text.given()?)));
    given
        .map(|(key, text)| {
            check(text, findings);
            (key, parse(&text.value, Variables::Text).template)
        })
        .collect()
}

fn check(text: &Placed<String>, findings: &mut Findings<'_>) {
    let parsed = parse(&text.value, Variables::Text);
    for mark in parsed.marks {
        let MarkKind::Part(index) = mark.kind else {
            continue;
        };
        let words = &text.value[mark.range.clone()];
        let name = match &parsed.template.parts[index] {
            Part::Value {
                path,
                optional: false,
                splat: false,
            } => path.join("."),
            _ => String::new(),
        };
        if KNOWN.contains(&name.as_str()) {
            continue;
        }
        let hint = match nearest(&name, KNOWN) {
            Some(near) => format!("did you mean `{{{near}}}`?"),
            None => format!(
                "there are `{{tool}}`, `{{error}}`, `{{timeout}}` and `{{details}}`; `{{{words}` is the text `{words}`"
            ),
        };
        let span = findings.within(text, &mark.range);
        findings.error(span, format!("messages have no `{words}`"), "unknown", hint);
    }
}
