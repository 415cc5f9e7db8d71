//! Generates a starter tools.yaml from existing tool declarations, or from the servers that another program knows.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::Serialize;
use serde_json::Value;

use crate::client_config::{ClientConfig, ConfiguredServer};
use crate::tools_file::include::ExactJson;
use crate::transcript::ToolDeclaration;

const TOOLS_HEADER: &str = "\
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

/// First words of the names of tools that only look at something.
const READING_WORDS: [&str; 14] = [
    "check", "count", "describe", "fetch", "find", "get", "glob", "grep", "list", "look", "query",
    "read", "search", "show",
];

/// Words in the names of tools that may take minutes.
const SLOW_WORDS: [&str; 10] = [
    "bash", "build", "compile", "crawl", "deploy", "download", "execute", "install", "run", "test",
];

/// Words in the names of inputs that are paths.
const PATH_WORDS: [&str; 8] = [
    "dir",
    "directory",
    "file",
    "filename",
    "filepath",
    "folder",
    "path",
    "paths",
];

/// Returns a comment for each setting that the name or the inputs of a tool suggest.
pub(super) fn suggest_settings(name: &str, effect: &str, schema: &Value) -> String {
    let words = split_words(name);
    let mut comments = Vec::new();
    let reads = |word: &String| READING_WORDS.contains(&word.as_str());
    if effect == "write" && words.first().is_some_and(reads) {
        let why = "instead, if it changes nothing: it may run beside others and be repeated";
        comments.push(("effect: read".to_owned(), why));
    }
    let paths = find_paths(schema);
    if !paths.is_empty() {
        let why = "if these are local paths: they must stay inside `root`";
        comments.push((format!("paths: [{}]", paths.join(", ")), why));
    }
    let is_slow = words.iter().any(|word| SLOW_WORDS.contains(&word.as_str()));
    comments.push(if is_slow {
        ("timeout: 5m".to_owned(), "the default is 30s")
    } else {
        ("timeout: 30s".to_owned(), "the default")
    });
    let mut lines = String::new();
    for (setting, why) in comments {
        // Writing to a string can't fail.
        let _ = writeln!(lines, "    # {setting:<18}  # {why}");
    }
    lines
}

/// Returns the inputs whose names say that they are paths, and that are texts or lists of texts.
fn find_paths(schema: &Value) -> Vec<&str> {
    let properties = schema["properties"].as_object().into_iter().flatten();
    let is_text = |schema: &Value| schema["type"] == "string" && schema.get("enum").is_none();
    let is_path = |(name, schema): &(&String, &Value)| {
        // A name is written into the file without quotes.
        name.chars()
            .all(|char| char.is_ascii_alphanumeric() || char == '_')
            && split_words(name)
                .iter()
                .any(|word| PATH_WORDS.contains(&word.as_str()))
            && (is_text(schema) || schema["type"] == "array" && is_text(&schema["items"]))
    };
    properties
        .filter(is_path)
        .map(|(name, _)| name.as_str())
        .collect()
}

/// Splits a name into its words, in lowercase: `readFile` and `read_file` into `read` and `file`.
fn split_words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut previous = ' ';
    for char in name.chars() {
        let begins_word = char.is_uppercase() && previous.is_lowercase();
        if begins_word || !char.is_alphanumeric() {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut().filter(|_| char.is_alphanumeric()) {
            word.extend(char.to_lowercase());
        }
        previous = char;
    }
    words.retain(|word| !word.is_empty());
    words
}

const SERVERS_HEADER: &str = "\
version: 1

# `toolq servers lock` asks the servers for their tools, which can be called from then on.
";

#[derive(Serialize)]
struct ServersSection<'a> {
    servers: &'a BTreeMap<String, ConfiguredServer>,
}

/// Returns the text of a tools.yaml with the servers of a configuration.
pub fn servers_tools_file(config: &ClientConfig) -> String {
    let section = ServersSection {
        servers: &config.servers,
    };
    let options = serde_saphyr::ser_options! { compact_list_indent: false };
    // Strings, lists and maps can always be written as YAML.
    let yaml = serde_saphyr::to_string_with_options(&section, options).unwrap_or_default();
    SERVERS_HEADER.to_owned() + &yaml
}
