//! Builds the text of the starter tools.yaml.

#[cfg(test)]
mod tests;

use crate::tools_file::write::yaml_writer::YamlValue;
use crate::transcript::ToolDeclaration;

const FILE_HEADER: &str = "\
# yaml-language-server: $schema=./tools.schema.json
# The schema for your editor: toolq generate schema > tools.schema.json
version: 1

tools:
";

/// Placeholder for the backing, which declarations for a model never contain.
const BACKING_COMMENT: &str = "    # What runs the tool: a program, or an HTTP request (`http:`). Without one, calls can be planned but not run.
    # command: [./program]   # reads the input as JSON from stdin, or takes it in its arguments as {name}
";

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
    let schema = serde_json::from_str(tool.input_schema.get());
    let effect = match (tool.read_only, tool.idempotent) {
        (true, _) => "read",
        (false, true) => "idempotent",
        (false, false) => "write",
    };
    let members = vec![
        (
            "description".to_owned(),
            YamlValue::Text(tool.description.clone()),
        ),
        (
            "input_schema".to_owned(),
            schema.unwrap_or(YamlValue::Table(Vec::new())),
        ),
        ("effect".to_owned(), YamlValue::Text(effect.to_owned())),
    ];
    let entry = YamlValue::Table(vec![(tool.name.clone(), YamlValue::Table(members))]);
    entry.write(text, 1);
    text.push_str(BACKING_COMMENT);
}
