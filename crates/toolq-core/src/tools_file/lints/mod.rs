//! Finds likely mistakes in a well-formed tools.yaml that depend on this machine or on what tools are meant to do: missing
//! programs, unmasked secrets, safe tools that start late, servers without a version, and sandboxes with a way out.

pub(crate) mod environment;
pub(crate) mod sandboxes;
mod secrets;
mod unpinned_packages;

use serde_json::Value;

use crate::tools_file::yaml::YamlNode;
use crate::types::{FileProblem, ToolsConfig};

/// Returns a warning for each schema in the file in which `find_problem` finds one: what it says completes "can't be called
/// over HTTP".
pub fn find_header_warnings(
    tools: &ToolsConfig,
    tree: &YamlNode,
    find_problem: impl Fn(&Value) -> Option<String>,
) -> Vec<FileProblem> {
    tools
        .tools
        .iter()
        .filter_map(|tool| {
            let keys = ["tools", &tool.name, "input_schema"];
            let span = tree.key_span_at(&keys, "");
            // For a key that is missing, the tree returns the span of the table. Such a schema isn't the author's.
            if span == tree.key_span_at(&keys[..2], "") {
                return None;
            }
            let why = find_problem(&tool.input_schema)?;
            let message = format!("`{}` can't be called over HTTP: {why}", tool.name);
            let hint =
                "`toolq serve --http` ends because of it; correct `x-mcp-header`, or remove it";
            Some(FileProblem::warning(span, message, "").with_hint(hint))
        })
        .collect()
}
