//! Builds the text of the starter tools.yaml.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

use crate::tools_file::write::exact_json::ExactJson;
use crate::tools_file::write::suggestions::suggest_settings;
use crate::transcript::ToolDeclaration;

const FILE_HEADER: &str = "\
version: 1

tools:
";

/// Placeholder for the backing, which declarations for a model never contain.
const BACKING_COMMENT: &str = "    # What runs the tool: a program, or an HTTP request (`http:`). Without one, calls can be planned but not run.
    # command: [./program]   # reads the input as JSON from stdin, or takes it in its arguments as {name}
";

#[derive(Serialize)]
struct StarterFile<'a> {
    tools: BTreeMap<&'a str, StarterTool<'a>>,
}

#[derive(Serialize)]
struct StarterTool<'a> {
    #[serde(skip_serializing_if = "str::is_empty")]
    description: &'a str,
    input_schema: Option<ExactJson<'a>>,
    effect: &'static str,
}

/// Returns the text of a tools.yaml that declares the same tools, each with a placeholder for its backing.
pub fn starter_tools_file(declarations: &[ToolDeclaration]) -> String {
    let mut text = FILE_HEADER.to_owned();
    for (index, declaration) in declarations.iter().enumerate() {
        if index > 0 {
            text.push('\n');
        }
        write_tool(&mut text, declaration);
    }
    text
}

fn write_tool(text: &mut String, tool: &ToolDeclaration) {
    let effect = match (tool.read_only, tool.idempotent) {
        (true, _) => "read",
        (false, true) => "idempotent",
        (false, false) => "write",
    };
    let schema = &*tool.input_schema;
    // A schema that is nested too deeply, or has half a surrogate pair, can't be in a tools.yaml either.
    let is_readable = tool.schema_fault().is_none();
    let entry = StarterFile {
        tools: BTreeMap::from([(
            &*tool.name,
            StarterTool {
                description: &tool.description,
                input_schema: is_readable.then(|| ExactJson(schema.into())),
                effect,
            },
        )]),
    };
    let options = serde_saphyr::ser_options! { compact_list_indent: false };
    // JSON can always be written as YAML.
    let yaml = serde_saphyr::to_string_with_options(&entry, options).unwrap_or_default();
    // The line `tools:` is in the header.
    text.push_str(yaml.split_once('\n').map_or("", |(_, rest)| rest));
    let schema: Value = serde_json::from_str(schema.get()).unwrap_or_default();
    text.push_str(&suggest_settings(&tool.name, effect, &schema));
    text.push_str(BACKING_COMMENT);
}
