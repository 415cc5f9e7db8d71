//! Warns about tools whose calls may run in parallel, but wait for the end of a streamed message, because nothing says
//! what they do to the world.

use crate::tools_file::yaml::YamlNode;
use crate::types::{Effect, FileProblem, SafetyPolicy, Tool, ToolsConfig};

/// Returns a warning for each tool with `concurrency_safe: true` that counts as `write` only because the file doesn't
/// say. An author who wrote `effect: write` has decided.
pub(crate) fn late_start_warnings(tools: &ToolsConfig, tree: &YamlNode) -> Vec<FileProblem> {
    // For a key that is missing, the tree returns the span of the table.
    let has_own_effect = |tool: &Tool| {
        let keys = ["tools", &tool.name, "effect"];
        tree.key_span_at(&keys, "") != tree.key_span_at(&keys[..2], "")
    };
    let starts_late = |tool: &&Tool| {
        tool.safety == SafetyPolicy::Declared(true)
            && tool.effect == Effect::Write
            && !has_own_effect(tool)
            && !tool.rule_settings.iter().any(|rule| rule.key == "effect")
    };
    let tools = tools.tools.iter().map(|tool| &**tool);
    tools
        .filter(starts_late)
        .map(|tool| {
            let span = tree.key_span_at(&["tools", &tool.name, "concurrency_safe"], "");
            let message = format!(
                "`{}` has no `effect`, so its calls wait for the end of a streamed message",
                tool.name
            );
            FileProblem::warning(span, message, "only decides what runs alongside").with_hint(
                "write `effect: read` if it changes nothing, `effect: idempotent` if it can be repeated, or `effect: write` if neither is true",
            )
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    use crate::tools_file::resolve::parse_tools_file;

    #[test]
    fn a_safe_tool_without_an_effect_is_warned_about_because_it_starts_late() {
        let text = r#"
rules:
  - {tools: "ruled_*", effect: write}
tools:
  safe: {input_schema: {type: object}, concurrency_safe: true, command: [date]}
  safe_read: {input_schema: {type: object}, concurrency_safe: true, effect: read, command: [date]}
  safe_idempotent: {input_schema: {type: object}, concurrency_safe: true, effect: idempotent, command: [date]}
  safe_write: {input_schema: {type: object}, concurrency_safe: true, effect: write, command: [date]}
  ruled_write: {input_schema: {type: object}, concurrency_safe: true, command: [date]}
  unsafe: {input_schema: {type: object}, concurrency_safe: false, command: [date]}
  unsaid: {input_schema: {type: object}, command: [date]}
"#;
        let loaded = parse_tools_file(text, Path::new("/"), Path::new("/"));
        assert_eq!(loaded.problems, []);
        let found = late_start_warnings(&loaded.tools.unwrap(), &loaded.tree.unwrap());
        let [warning] = found.as_slice() else {
            panic!("{found:?}")
        };
        assert_eq!(
            warning.message,
            "`safe` has no `effect`, so its calls wait for the end of a streamed message"
        );
        let line = text[..warning.span.start].lines().count();
        assert_eq!(text.lines().nth(line - 1), text.lines().nth(4));
        assert!(text[warning.span.start..].starts_with("concurrency_safe"));
    }
}
