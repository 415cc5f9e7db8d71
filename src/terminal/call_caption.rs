//! What a row of progress says about a call.

use std::borrow::Cow;
use std::num::NonZeroUsize;
use std::time::Duration;

use unicode_width::UnicodeWidthStr;

use crate::terminal::bar_styles::BarOptions;
use crate::terminal::repeat_command::{CallRepeat, RepeatCommand};
use redact::Mask;
use toolq_core::json::{Input, JsonText, join_json_lines};
use toolq_core::schedule::StartWait;
use toolq_core::text::{escape, format_duration, truncate_to_columns};
use toolq_core::types::{
    Call, CallEnding, CallKey, CallRef, CallRequest, CheckedCall, Event, Outcome, Template, Tool,
};

/// Maximum width of a name in a row, to leave room for its status.
const MAX_NAME_COLUMNS: usize = 24;
/// Maximum width of an input in a row.
const MAX_INPUT_COLUMNS: usize = 40;

/// The text of a call's row, escaped and masked.
pub(super) struct CallCaption {
    name: String,
    /// The name after those of its parent agents, for a line that isn't below their rows.
    pub(super) path: String,
    /// What tells it from others, for such a line.
    pub(super) subject: String,
    /// The beginning of its input, for its row.
    input: Option<String>,
    options: BarOptions,
    /// The command line that repeats it.
    pub(super) repeat: Option<CallRepeat>,
    /// The progress of an agent: `turn 1 of at most 3`.
    pub(super) turn: Option<String>,
    /// The latest tip, initially the tool's `status.doing`.
    pub(super) tip: Option<String>,
    /// From 0 to 1.
    pub(super) progress: Option<f64>,
}

impl CallCaption {
    /// Returns what is known when a call is queued.
    pub(super) fn new(
        checked: &CheckedCall,
        repeat: Option<&RepeatCommand>,
        options: BarOptions,
        mask: &Mask,
    ) -> Self {
        let labels = CallLabels::new(checked.request());
        let call = CallRef::new(&checked.call, None);
        let tip = labels.doing.as_deref();
        let tip = tip.map(|doing| mask_and_escape(doing, mask));
        Self {
            name: short_name(&labels.name, mask),
            path: short_name(&call_path(&call, &labels.name), mask),
            subject: short_subject(&labels, mask, MAX_SUBJECT_COLUMNS),
            input: (tip.is_none()).then(|| short_input(checked, mask, MAX_INPUT_COLUMNS)),
            options,
            repeat: repeat.and_then(|repeat| repeat.repeat_of(checked.request(), mask)),
            turn: None,
            tip,
            progress: None,
        }
    }

    /// Begins a row that isn't about an attempt: `fetch: waits for its turn`.
    pub(super) fn with_label(&self, label: &str) -> String {
        format!("{}: {label}", self.name)
    }

    /// Formats the row: `bash {"command":"make"}: halfway, 50 %`. The input leaves room for what follows it, and is left out if the
    /// terminal is too narrow for both.
    pub(super) fn text(&self) -> String {
        let percent = self
            .progress
            .map(|progress| format!("{:.0} %", progress * 100.0));
        let details = self.turn.iter().chain(&self.tip).cloned();
        let details: Vec<_> = details.chain(percent).collect();
        let details = match details.as_slice() {
            [] => String::new(),
            details => format!(": {}", details.join(", ")),
        };
        let short = format!("{}{details}", self.name);
        let Some(input) = self.input.as_deref().filter(|input| !input.is_empty()) else {
            return short;
        };
        let room = self.options.text_columns();
        let input_room = if details.is_empty() {
            MAX_INPUT_COLUMNS
        } else {
            self.options.input_columns()
        };
        let input = truncate_closed(input, input_room);
        let long = format!("{} {input}{details}", self.name);
        if !details.is_empty() && long.width() > room {
            return short;
        }
        long
    }
}

/// Makes a name safe to show, and short.
pub(super) fn short_name(name: &str, mask: &Mask) -> String {
    truncate_to_columns(&mask_and_escape(name, mask), MAX_NAME_COLUMNS).into_owned()
}

/// Formats the progress of an agent: `turn 1 of at most 3`. For people, turns of an agent count from 1.
pub(super) fn agent_turn(turn: u64, max_turns: u64) -> String {
    format!("turn {} of at most {max_turns}", turn.saturating_add(1))
}

/// Formats the progress of an agent in the row of its call.
pub(super) fn agent_turn_label(call: &CallRef, agent: &str, turn: u64, max_turns: u64) -> String {
    let label = agent_turn(turn, max_turns);
    // If the agent was called through `new_task`, that is the name of the row.
    if *agent == *call.tool_name {
        label
    } else {
        format!("{agent}, {label}")
    }
}

// Texts that describe a call to people.

/// A call's texts from its tool's declaration, neither escaped nor masked.
pub(crate) struct CallLabels {
    /// The tool's `display_name`, or the name in the call.
    pub(crate) name: String,
    /// The status while the call waits.
    pub(crate) wait: Option<String>,
    /// The status while it runs.
    pub(crate) doing: Option<String>,
    /// What tells the call from others of its tool: its id, and its status while it runs or the beginning of its input.
    pub(crate) subject: String,
}

/// Maximum part of an input that is masked to show its beginning. No secret that begins in the shown part is longer.
pub(crate) const MAX_MASKED_BYTES: usize = 64 << 10;

impl CallLabels {
    pub(crate) fn new(CallRequest { call, accepted }: CallRequest<'_>) -> Self {
        let name = call.name.to_string();
        let Some(accepted) = accepted else {
            return Self {
                name,
                wait: None,
                doing: None,
                subject: call_subject(call, None),
            };
        };
        let tool = &accepted.tool;
        let filled_template = |template: &Option<Template>| {
            let template = template.as_ref()?;
            Some(fill_template(template, &accepted.input))
        };
        let doing = filled_template(&tool.status.doing);
        Self {
            name: tool.display_name.clone().unwrap_or(name),
            wait: filled_template(&tool.status.wait),
            subject: call_subject(call, doing.as_deref()),
            doing,
        }
    }
}

fn call_subject(call: &Call, doing: Option<&str>) -> String {
    let id = &call.id;
    let input = call.input.as_ref().map_or("", Input::text);
    match (doing, input) {
        (Some(doing), _) => format!("{id} ({doing})"),
        (None, "" | "{}") => id.clone(),
        (None, input) => {
            let end = input.floor_char_boundary(MAX_MASKED_BYTES);
            format!("{id} {}", join_json_lines(&input[..end]))
        }
    }
}

/// The texts of a call whose input is still arriving, neither escaped nor masked.
pub(crate) struct PartialCallLabels {
    /// As in [`CallLabels`].
    pub(crate) name: String,
    /// As in [`CallLabels`], with the values that have arrived.
    pub(crate) wait: Option<String>,
}

impl PartialCallLabels {
    /// Fills in the texts of `tool`. `input` is the part of the input that has arrived, as a JSON object.
    pub(crate) fn new(call: &CallRef, tool: Option<&Tool>, input: &str) -> Self {
        let display_name = tool.and_then(|tool| tool.display_name.as_ref());
        let wait = tool.and_then(|tool| tool.status.wait.as_ref());
        let wait = wait.and_then(|wait| Some(fill_template(wait, &Input::parse(input).ok()?)));
        Self {
            name: display_name
                .map_or(&*call.tool_name, String::as_str)
                .to_owned(),
            wait,
        }
    }
}

/// Fills the template with values of the input: strings verbatim, other values as JSON, missing ones as nothing.
/// `${NAME}` is left as is: a status text never contains values of the environment.
fn fill_template(template: &Template, input: &Input) -> String {
    template.fill(|path| {
        let value = input.value_at(path).map_or("", JsonText::get);
        serde_json::from_str(value).unwrap_or_else(|_| value.to_owned())
    })
}

/// Formats the size of a batch: `a batch of 3 calls` or `200 calls, 10 at a time`. Returns `None` for a single call.
pub(crate) fn batch_label(calls: usize, jobs: NonZeroUsize) -> Option<String> {
    match calls {
        0 | 1 => None,
        calls if calls <= jobs.get() => Some(format!("a batch of {calls} calls")),
        calls => Some(format!("{calls} calls, {jobs} at a time")),
    }
}

// Short texts about how calls end.

/// The status of a tool while its `describe` program runs.
pub(crate) const DESCRIBING_LABEL: &str = "getting its schema";
/// The status of a server while it lists its tools.
pub(crate) const LISTING_LABEL: &str = "asking for its tools";
/// The status of a call while its input arrives, unless its tool declares a status.
pub(crate) const ARRIVING_LABEL: &str = "receiving its input";
/// The status of a call while its tool's `probe` runs.
pub(crate) const PROBING_LABEL: &str = "checking whether it was done";

/// Says what a call waits for: `waits for its turn: rate of save`.
pub(crate) fn throttle_label(wait: &StartWait) -> String {
    let (limit, subject) = (wait.limit_name(), &wait.subject);
    format!("waits for its turn: {limit} of {subject}")
}

/// Describes how a call ended: `ok`, `exit 2`, `HTTP 503`, `timeout after 30s`, `unknown tool`.
fn untimed_label(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Failed { ending, .. } => ending_label(*ending),
        Outcome::TimedOut { limit, .. } => format!("timeout after {}", format_duration(*limit)),
        _ => outcome.status().label(),
    }
}

/// Describes how a call ended and how long it took: `ok, 1.5s`.
pub(crate) fn timed_outcome_label(outcome: &Outcome, duration: Duration) -> String {
    join_label(untimed_label(outcome), outcome, duration)
}

/// Describes how a call ended that didn't succeed, after the word for its kind, and how long it took: `exit 2, 1.5s`. That is nothing
/// if the kind says it all.
pub(crate) fn failure_label(outcome: &Outcome, duration: Duration) -> String {
    let label = untimed_label(outcome);
    let says_more = label != outcome.kind().label();
    join_label(
        if says_more { label } else { String::new() },
        outcome,
        duration,
    )
}

/// Adds that a result is from the memory, and a duration unless it is zero or part of the label.
fn join_label(label: String, outcome: &Outcome, duration: Duration) -> String {
    let took = format_duration(duration);
    let has_duration = duration.is_zero() || label.ends_with(&format!(" {took}"));
    let parts = [
        Some(label).filter(|label| !label.is_empty()),
        outcome.is_restored().then(|| "from memory".to_owned()),
        (!has_duration).then_some(took),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

fn ending_label(ending: CallEnding) -> String {
    match ending {
        CallEnding::ExitCode(code) => format!("exit {code}"),
        CallEnding::Signal(signal) => format!("signal {signal}"),
        CallEnding::LimitExceeded(limit) => format!("over limits.{}", limit.name()),
        CallEnding::HttpStatus(status) | CallEnding::RedirectedStatus(status) => {
            format!("HTTP {status}")
        }
        CallEnding::ServerError => "reported an error".to_owned(),
        CallEnding::Answered => "answered".to_owned(),
        CallEnding::Unfinished => "turn limit reached".to_owned(),
    }
}

/// Describes a retry: `HTTP 503, attempt 2 in 1.2s`. Returns `None` for other events.
pub(crate) fn retry_label(event: &Event<'_>) -> Option<String> {
    let Event::Retrying {
        attempt,
        outcome,
        wait,
        ..
    } = event
    else {
        return None;
    };
    let (ended, next, wait) = (untimed_label(outcome), attempt + 1, format_duration(*wait));
    Some(format!("{ended}, attempt {next} in {wait}"))
}

/// What a row or line of progress is about.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum RowKey {
    Call(CallKey),
    /// The `describe` program of the tool with this name.
    Describe(String),
    /// A server that is listing its tools.
    Server(String),
}

pub(crate) fn row_key(call: &CallRef) -> RowKey {
    RowKey::Call(call.key())
}

/// Returns whether a batch consists of an agent's calls. Only the calls of the input are counted.
pub(crate) fn is_agent_batch(calls: &[CallRef]) -> bool {
    calls.first().is_some_and(|call| call.parent.is_some())
}

/// Formats the name of a call after those of its parent agents: `invoke_expert › search`.
pub(crate) fn call_path(call: &CallRef, name: &str) -> String {
    call.ancestors().fold(name.to_owned(), |name, agent| {
        format!("{} › {name}", agent.tool_name)
    })
}

/// The indentation of continuation lines, if a line is too long for the terminal.
pub(crate) const WRAPPED_LINE_INDENT: &str = "    ";

/// Maximum width of what a line says about the input and the failure of a call.
pub(crate) const MAX_SUBJECT_COLUMNS: usize = 72;

/// The same where lines have no width, as in a pipe.
pub(crate) const MAX_PIPED_SUBJECT_COLUMNS: usize = 1_000;

const MAX_CAUSE_COLUMNS: usize = 160;

/// Formats a line about a call that didn't succeed, after the word for that: `fetch toolu_7 {"url":"http://…"}: HTTP 503, 2s:
/// overloaded`. The arguments are already safe to show, except for `cause`.
pub(crate) fn failure_line(
    name: &str,
    subject: &str,
    label: &str,
    cause: Option<&str>,
    mask: &Mask,
) -> String {
    let cause = cause.map(|cause| mask_and_escape(cause, mask));
    let cause = cause
        .as_deref()
        .map(|cause| truncate_to_columns(cause, MAX_CAUSE_COLUMNS));
    let mut line = format!("{name} {subject}");
    let label = Some(label).filter(|label| !label.is_empty());
    for part in label.into_iter().chain(cause.as_deref()) {
        line.push_str(": ");
        line.push_str(part);
    }
    line
}

/// Makes the subject of a call safe to show, and short.
pub(crate) fn short_subject(labels: &CallLabels, mask: &Mask, columns: usize) -> String {
    truncate_closed(&mask_and_escape(&labels.subject, mask), columns).into_owned()
}

/// Returns the beginning of a call's input, safe to show, or nothing for an empty one.
pub(crate) fn short_input(checked: &CheckedCall, mask: &Mask, columns: usize) -> String {
    let input = checked.call.input.as_ref().map_or("", Input::text);
    if input == "{}" {
        return String::new();
    }
    let beginning = &input[..input.floor_char_boundary(MAX_MASKED_BYTES)];
    let input = mask_and_escape(&join_json_lines(beginning), mask);
    truncate_closed(&input, columns).into_owned()
}

/// Cuts JSON or a text in parentheses, but keeps its closing characters, so that it can't be confused with what follows:
/// `{"path":"a…"}`.
pub(crate) fn truncate_closed(text: &str, columns: usize) -> Cow<'_, str> {
    let cut = truncate_to_columns(text, columns);
    let end = match text.chars().next_back() {
        Some(')') => ")",
        _ if text.contains('{') => "\"}",
        _ => "",
    };
    if matches!(cut, Cow::Borrowed(_)) || end.is_empty() {
        return cut;
    }
    let cut = truncate_to_columns(text, columns.saturating_sub(end.len()));
    let is_in_string = end == ")" || ends_in_string(&cut);
    let end = if is_in_string { end } else { "}" };
    Cow::Owned(format!("{cut}{end}"))
}

/// Returns whether this beginning of a JSON text ends in a string.
fn ends_in_string(json: &str) -> bool {
    let (mut is_in_string, mut is_escaped) = (false, false);
    for c in json.chars() {
        is_in_string ^= c == '"' && !is_escaped;
        is_escaped = c == '\\' && !is_escaped;
    }
    is_in_string
}

/// Makes a text safe to show.
pub(crate) fn mask_and_escape(text: &str, mask: &Mask) -> String {
    escape(&mask.apply(text)).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    use toolq_core::types::{StatusTemplates, TemplatePart, Tool};
    use toolq_testing::{accepted_call, sample_tool};

    #[test]
    fn templates_are_filled_from_the_input() {
        let value = |name: &str| TemplatePart::Value {
            path: vec![name.to_owned()],
            optional: true,
            splat: false,
        };
        let text = |text: &str| TemplatePart::Text(text.to_owned());
        let doing = Template {
            parts: vec![
                text("reading "),
                value("path"),
                text(" "),
                value("n"),
                value("missing"),
            ],
        };
        let status = StatusTemplates {
            wait: None,
            doing: Some(doing),
        };
        let tool = Tool {
            status,
            ..sample_tool("read")
        };
        let call = accepted_call(0, tool, true, r#"{"path":"a {n}","n":1.50}"#);
        let labels = CallLabels::new(call.request());
        assert_eq!(labels.doing.as_deref(), Some("reading a {n} 1.50"));
        assert_eq!(labels.wait, None);
        assert_eq!(labels.name, "read");
        assert_eq!(labels.subject, "toolu_0 (reading a {n} 1.50)");
    }

    #[test]
    fn the_subject_of_a_call_without_a_status_is_its_input() {
        let subject = |input| {
            let call = accepted_call(2, sample_tool("read"), true, input);
            CallLabels::new(call.request()).subject
        };
        assert_eq!(subject("{}"), "toolu_2");
        assert_eq!(subject(r#"{"path":"a"}"#), r#"toolu_2 {"path":"a"}"#);
        let long = format!(r#"{{"text":"{}"}}"#, "ü".repeat(100_000));
        assert!(subject(&long).len() < 70_000);
    }
}
