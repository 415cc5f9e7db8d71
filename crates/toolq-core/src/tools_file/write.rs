//! Generates a starter tools.yaml from existing tool declarations, or from the servers that another program knows.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use serde::Serialize;

use crate::client_config::ClientConfig;
use crate::tools_file::include::ExactJson;
use crate::transcript::ToolDeclaration;

/// Says what declarations for a model never contain.
const TOOLS_HEADER: &str = "\
version: 1

# Each tool needs what runs it. Without that, its calls can be planned but not run.
#   command: [./program]   # reads the input as JSON from stdin, or takes it in its arguments as {name}; or a request (http:)
# And, where it fits (`toolq check` says which inputs look like paths):
#   effect: read           # it changes nothing: it may run beside others and be repeated
#   paths: [NAME]          # inputs that are local paths: they must stay inside `root`
#   timeout: 5m            # the default is 30s
#   once: [NAME]           # inputs for whose values it runs once, whatever the id of the call

tools:
";

#[derive(Serialize)]
struct StarterTool<'a> {
    #[serde(skip_serializing_if = "str::is_empty")]
    description: &'a str,
    input_schema: Option<ExactJson<'a>>,
    effect: &'static str,
}

/// Returns the text of a tools.yaml that declares the same tools, each with a placeholder for its backing.
pub fn starter_tools_file(declarations: &[ToolDeclaration]) -> String {
    let mut text = TOOLS_HEADER.to_owned();
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
    let entry = StarterTool {
        description: &tool.description,
        input_schema: is_readable.then(|| ExactJson(schema.into())),
        effect,
    };
    let file = BTreeMap::from([("tools", BTreeMap::from([(&*tool.name, entry)]))]);
    let options = serde_saphyr::ser_options! { compact_list_indent: false };
    // JSON can always be written as YAML.
    let yaml = serde_saphyr::to_string_with_options(&file, options).unwrap_or_default();
    // The line `tools:` is in the header.
    text.push_str(yaml.split_once('\n').map_or("", |(_, rest)| rest));
}

const SERVERS_HEADER: &str = "\
version: 1

# `toolq servers lock` asks the servers for their tools, which can be called from then on.
";

/// Returns the text of a tools.yaml with the servers of a configuration.
pub fn servers_tools_file(config: &ClientConfig) -> String {
    let section = BTreeMap::from([("servers", &config.servers)]);
    let options = serde_saphyr::ser_options! { compact_list_indent: false };
    // Strings, lists and maps can always be written as YAML.
    let yaml = serde_saphyr::to_string_with_options(&section, options).unwrap_or_default();
    SERVERS_HEADER.to_owned() + &yaml
}
