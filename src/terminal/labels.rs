use std::fmt::Write as _;
use std::num::NonZeroUsize;

use toolq_core::json::Input;
use toolq_core::types::{Checked, Part, Template, Verdict};

/// What people see of a call, in its tool's words. Not escaped and not masked.
pub(crate) struct Words {
    /// The tool's `display_name`, or the name that was asked for.
    pub(crate) name: String,
    /// While it waits.
    pub(crate) wait: Option<String>,
    /// While it runs.
    pub(crate) doing: Option<String>,
}

impl Words {
    pub(crate) fn of(checked: &Checked) -> Self {
        let name = checked.call.name.clone();
        let Verdict::Accepted(accepted) = &checked.verdict else {
            return Self {
                name,
                wait: None,
                doing: None,
            };
        };
        let tool = &accepted.tool;
        let filled = |template: &Option<Template>| {
            let template = template.as_ref()?;
            Some(fill(template, &accepted.input))
        };
        Self {
            name: tool.display_name.clone().unwrap_or(name),
            wait: filled(&tool.status.wait),
            doing: filled(&tool.status.doing),
        }
    }
}

/// The template with values of the input: a string as it is, another value as JSON, a missing one as nothing. The
/// environment is never read: what people see needs none.
fn fill(template: &Template, input: &Input) -> String {
    let mut text = String::new();
    for part in &template.parts {
        match part {
            Part::Text(part) => text.push_str(part),
            Part::Value { path, .. } => {
                let value = input.at(path).map_or("", |value| value.get());
                let string: Option<String> = serde_json::from_str(value).ok();
                text.push_str(string.as_deref().unwrap_or(value));
            }
            Part::Env { name, .. } => {
                // Writing to a string cannot fail.
                let _ = write!(text, "${{{name}}}");
            }
        }
    }
    text
}

/// `3 calls in parallel`, `200 calls, 10 at a time`; none for a call that is alone.
pub(crate) fn batch_words(calls: usize, jobs: NonZeroUsize) -> Option<String> {
    match calls {
        0 | 1 => None,
        calls if calls <= jobs.get() => Some(format!("{calls} calls in parallel")),
        calls => Some(format!("{calls} calls, {jobs} at a time")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use toolq_core::testing::{accepted, tool};
    use toolq_core::types::{Status, Tool};

    #[test]
    fn templates_are_filled_from_the_input() {
        let value = |name: &str| Part::Value {
            path: vec![name.to_owned()],
            optional: true,
            splat: false,
        };
        let text = |text: &str| Part::Text(text.to_owned());
        let doing = Template {
            parts: vec![
                text("reading "),
                value("path"),
                text(" "),
                value("n"),
                value("missing"),
            ],
        };
        let status = Status {
            wait: None,
            doing: Some(doing),
        };
        let tool = Tool {
            status,
            ..tool("read")
        };
        let words = Words::of(&accepted(0, tool, true, r#"{"path":"a {n}","n":1.50}"#));
        assert_eq!(words.doing.as_deref(), Some("reading a {n} 1.50"));
        assert_eq!(words.wait, None);
        assert_eq!(words.name, "read");
    }
}
