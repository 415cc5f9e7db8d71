//! Warns about what is declared and has no effect: tools without a backing, secrets that mask nothing, agents in a circle.
//! These aren't errors, because plans and replays work regardless.

use redact::Mask;

use crate::os::Environment;
use crate::text::{MAX_NAMED_TOOLS, list_some};
use crate::tools_file::tables::agent_tools::agent_cycle_warnings;
use crate::tools_file::yaml::YamlNode;
use crate::types::{FileProblem, ToolsConfig};

/// Returns warnings about `tools`. `tree` provides their positions.
pub fn find_warnings(
    tools: &ToolsConfig,
    tree: &YamlNode,
    environment: &Environment,
) -> Vec<FileProblem> {
    let mut found = ineffective_secret_warnings(tree, environment);
    found.extend(missing_backing_warning(tools, tree));
    found.extend(agent_cycle_warnings(tools, tree));
    found
}

/// Returns warnings about names under `secrets` that mask nothing because the variable is misspelled, unset, empty, or
/// so short that masking it would hide unrelated text.
fn ineffective_secret_warnings(tree: &YamlNode, environment: &Environment) -> Vec<FileProblem> {
    let mut found = Vec::new();
    for (name, span) in tree.texts_at(&["secrets"]) {
        let value = environment.get_os(name).unwrap_or_default();
        let (message, hint) = if value.is_empty() {
            let message = format!("the variable {name} is unset or empty, so nothing is masked");
            (
                message,
                "`secrets` lists names of environment variables; check the spelling",
            )
        } else if value.len() < Mask::MIN_SECRET_BYTES {
            let message = format!("the value of {name} is too short to be masked");
            (
                message,
                "values under 6 bytes are never masked, since that would hide unrelated text",
            )
        } else {
            continue;
        };
        found.push(FileProblem::warning(span, message, "").with_hint(hint));
    }
    found
}

/// Returns one warning for all tools without a backing. Right after `init --from`, that is every tool.
fn missing_backing_warning(tools: &ToolsConfig, tree: &YamlNode) -> Option<FileProblem> {
    let names: Vec<&str> = tools
        .tools
        .iter()
        .filter(|tool| tool.backing.is_none())
        .map(|tool| tool.name.as_str())
        .collect();
    let first = names.first()?;
    let have = if names.len() == 1 { "has" } else { "have" };
    let shown = list_some(
        names.iter().map(|name| format!("`{name}`")),
        MAX_NAMED_TOOLS,
    );
    let message = format!("{shown} {have} no `command`, `http`, `agent` or `mcp`");
    let span = tree.key_span_at(&["tools", first], "");
    let hint = "add one of them; until then, calls can be planned, but running them is an error";
    Some(FileProblem::warning(span, message, "nothing runs it").with_hint(hint))
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;
    use std::path::Path;

    use super::*;
    use crate::tools_file::load::parse_tools_file;
    use crate::types::Span;

    #[test]
    fn what_has_no_effect_is_warned_about() {
        let text = "secrets: [NONE, SET, LONG]
tools:
  a: {input_schema: {type: object}, command: [cat]}
  b: {input_schema: {type: object}}
";
        let environment = [("SET", "1"), ("LONG", "123456")]
            .map(|(name, value)| (OsString::from(name), OsString::from(value)))
            .into_iter()
            .collect();
        let loaded = parse_tools_file(text, Path::new("/"), Path::new("/"));
        let (tools, tree) = (loaded.tools.unwrap(), loaded.tree.unwrap());
        let found = find_warnings(&tools, &tree, &environment);
        let found: Vec<(&str, &str)> = found
            .iter()
            .map(|problem| {
                let Span { start, len } = problem.span;
                (problem.message.as_str(), &text[start..start + len])
            })
            .collect();
        let expected = [
            (
                "the variable NONE is unset or empty, so nothing is masked",
                "NONE",
            ),
            ("the value of SET is too short to be masked", "SET"),
            ("`b` has no `command`, `http`, `agent` or `mcp`", "b"),
        ];
        assert_eq!(found, expected);
    }
}
