//! Declarations → the text of a tools.yaml to start from.

#[cfg(test)]
mod tests;

use crate::tools_file::write::yaml::Block;
use crate::transcript::Declaration;

const HEAD: &str = "\
# yaml-language-server: $schema=./tools.schema.json
# The schema for your editor: toolq generate schema > tools.schema.json
version: 1

tools:
";

/// Stands where a declaration has nothing: what a tool runs is never declared to a model.
const BACKING: &str = "    # What does the work: a program, or a request (`http:`). Without one the tool can be planned, not run.
    # command: [./program]   # gets the input as JSON on stdin, or in its arguments as {name}
";

/// A tools.yaml that declares the same tools, each with a place for its backing.
pub fn tools_file(declarations: &[Declaration]) -> String {
    let mut text = HEAD.to_owned();
    for (index, declaration) in declarations.iter().enumerate() {
        if index > 0 {
            text.push('\n');
        }
        add_tool(&mut text, declaration);
    }
    text
}

fn add_tool(text: &mut String, tool: &Declaration) {
    let schema = serde_json::from_str(tool.input_schema.get());
    let effect = match (tool.read_only, tool.idempotent) {
        (true, _) => "read",
        (false, true) => "idempotent",
        (false, false) => "write",
    };
    let members = vec![
        (
            "description".to_owned(),
            Block::Text(tool.description.clone()),
        ),
        (
            "input_schema".to_owned(),
            schema.unwrap_or(Block::Map(Vec::new())),
        ),
        ("effect".to_owned(), Block::Text(effect.to_owned())),
    ];
    let entry = Block::Map(vec![(tool.name.clone(), Block::Map(members))]);
    entry.write(text, 1);
    text.push_str(BACKING);
}
