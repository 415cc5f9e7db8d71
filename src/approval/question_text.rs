//! Writes the question whether a call may start. It shows the whole input and all that would run, with every control
//! character escaped: the call was written by a model, and must not be able to hide a part of itself.

use redact::Mask;
use toolq_core::plan::{render_invocation, render_sandbox};
use toolq_core::text::escape;
use toolq_core::types::ApprovalRequest;

/// The deepest indentation of a line of an input.
const MAX_INPUT_INDENT: usize = 20;

/// Renders what a person reads. Everything that comes from the model or tools.yaml is escaped.
pub(super) fn render_question(request: &ApprovalRequest, mask: &Mask) -> String {
    let ApprovalRequest { call, accepted } = request;
    let shown = |text: &str| escape(&mask.apply(text)).into_owned();
    let tool = shown(&accepted.tool.name);
    let runs = render_invocation(accepted, mask);
    let sandbox = render_sandbox(accepted, mask);
    let sandbox = sandbox.map_or_else(String::new, |sandbox| format!("\n  {sandbox}"));
    let agent = call.parent.as_ref().map_or_else(String::new, |agent| {
        format!(", for the agent {}", shown(&agent.tool_name))
    });
    format!(
        "\napprove {tool} ({effect}), call {id} of turn {turn}{agent}?\n  input: {input}\n  runs:  {runs}{sandbox}\n\
         [y]es, [n]o (`n REASON` tells the model why), [a]ll calls of {tool}, [q]uit the run: ",
        effect = accepted.tool.effect.name(),
        id = shown(&call.tool_use_id),
        turn = call.turn,
        input = shown_lines(&mask.apply(accepted.input.text())),
        runs = runs
            .as_deref()
            .unwrap_or("nothing: the tool has no backing"),
    )
}

/// Renders an input with the line breaks that the model put between its values: a JSON string can't contain raw ones. Empty
/// lines are left out, and the others are indented below the first, so that no line can pass for one of the question.
fn shown_lines(input: &str) -> String {
    let lines = input.lines().filter(|line| !line.trim().is_empty());
    let lines = lines.map(|line| {
        let line = line.trim_end();
        let indent = line.len() - line.trim_start().len();
        let indent = indent.min(MAX_INPUT_INDENT);
        format!("{:indent$}{}", "", escape(line.trim_start()))
    });
    lines.collect::<Vec<_>>().join("\n         ")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// No line of an input looks like one of the question, and nothing is pushed off the screen.
    #[test]
    fn an_input_has_its_lines_and_nothing_hidden() {
        let shown = |input| shown_lines(input);
        assert_eq!(shown(r#"{"to": "EUR"}"#), r#"{"to": "EUR"}"#);
        assert_eq!(
            shown("{\r\n  \"to\": \"EUR\",\n\n\n\t\"n\": 1\n}"),
            "{\n           \"to\": \"EUR\",\n          \"n\": 1\n         }"
        );
        let far = format!("{{\n{}\"n\": \u{1b}[2J}}", " ".repeat(500));
        assert_eq!(
            shown(&far),
            format!("{{\n{}\"n\": \\x1b[2J}}", " ".repeat(29))
        );
    }
}
