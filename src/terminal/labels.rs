//! Texts that describe a call to people.

use std::num::NonZeroUsize;

use toolq_core::json::{Input, join_json_lines};
use toolq_core::types::{Call, CallRef, CallRequest, Template, Tool};

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
        let value = input.value_at(path).map_or("", |value| value.get());
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
