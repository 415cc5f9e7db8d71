//! Reads tool declarations made for other programs: the `tools` of a recorded request (Anthropic, `OpenAI` chat,
//! `OpenAI` responses), an array of tools, a single tool, or an MCP server's response to `tools/list`.

use std::borrow::Cow;
use std::collections::HashSet;

use serde_json::Value;
use serde_json::value::RawValue;

use crate::json::{JsonText, ParsedObject, describe_parse_error};
use crate::transcript::document::InputDocument;
use crate::transcript::document_error::DocumentError;
use crate::transcript::document_frames;
use crate::transcript::document_frames::DocumentVisitor;
use crate::transcript::input_error::{InputError, OffsetError};
use crate::transcript::input_source::InputSource;

/// Keys under which vendors put the schema of a tool's input.
const SCHEMA_KEYS: [&str; 3] = ["input_schema", "inputSchema", "parameters"];

const EXPECTED_INPUT: &str = "expected a request with `tools`, an array of tools, or an MCP server's response to `tools/list`";

/// A tool as declared to a model.
#[derive(Debug, Clone)]
pub struct ToolDeclaration {
    /// Name of the tool: any string that an API accepts.
    pub name: String,
    /// Description for the model; empty if there is none.
    pub description: String,
    /// JSON Schema of its input, verbatim.
    pub input_schema: Box<RawValue>,
    /// It has no side effects (MCP's `readOnlyHint`).
    pub read_only: bool,
    /// Calling it twice has the same effect as calling it once (MCP's `idempotentHint`).
    pub idempotent: bool,
}

impl ToolDeclaration {
    /// Says why the schema can't be in a tools.yaml; `None` if it can.
    pub fn schema_fault(&self) -> Option<String> {
        let schema = serde_json::from_str::<Value>(self.input_schema.get());
        schema.err().map(|error| describe_parse_error("it", &error))
    }
}

/// The tools that an input declares.
#[derive(Debug, Default)]
pub struct ToolDeclarations {
    /// Tools that need a backing, in the order of the input.
    pub tools: Vec<ToolDeclaration>,
    /// Names or types of the tools that the API runs itself. They have no schema and need no backing.
    pub api_tools: Vec<String>,
    /// Number of tools without a name, which can't be declared.
    pub nameless_tools: usize,
    /// The input is one page of an MCP server's list (`nextCursor`): the server has more tools.
    pub is_partial: bool,
}

/// Reads the tools that `source` declares. A single document may have at most `max_document` bytes.
///
/// # Errors
/// The source can't be read, isn't valid JSON, or declares no tools, or two tools have the same name.
pub fn read_declarations(
    mut source: InputSource,
    max_document: u64,
) -> Result<ToolDeclarations, InputError> {
    let mut collector = DeclarationCollector::default();
    document_frames::read_documents(&mut source, max_document, &mut collector)?;
    if collector.found.tools.is_empty() {
        let error = OffsetError::at(0, "the input declares no tools");
        return Err(source.locate(error.hint(EXPECTED_INPUT)));
    }
    Ok(collector.found)
}

/// The declarations read so far.
#[derive(Default)]
struct DeclarationCollector {
    found: ToolDeclarations,
    names: HashSet<String>,
}

impl DocumentVisitor for DeclarationCollector {
    fn visit_document<'a>(
        &mut self,
        document: &InputDocument<'a>,
    ) -> Result<(), DocumentError<'a>> {
        for tool in list_tools(document) {
            let object = tool
                .object()
                .ok_or_else(|| DocumentError::not_an_object("a tool", tool))?;
            let declaration = match parse_declaration(&object)? {
                ListedTool::Declared(declaration) => declaration,
                ListedTool::OfApi => {
                    let name = object.get_text("name").or_else(|| object.get_text("type"));
                    self.found.api_tools.extend(name.map(Cow::into_owned));
                    continue;
                }
                ListedTool::Nameless => {
                    self.found.nameless_tools += 1;
                    continue;
                }
            };
            if !self.names.insert(declaration.name.clone()) {
                let name = declaration.name.escape_debug();
                return Err(DocumentError::new(
                    tool,
                    format!("two tools are named `{name}`"),
                ));
            }
            self.found.tools.push(declaration);
        }
        self.found.is_partial |= document.object.as_ref().is_some_and(has_more);
        Ok(())
    }
}

/// Returns the JSON of the tools in a document.
fn list_tools<'a>(document: &InputDocument<'a>) -> Vec<JsonText<'a>> {
    if let Some(tools) = document.json.elements() {
        return tools;
    }
    let Some(object) = &document.object else {
        return Vec::new();
    };
    let result = object.get_object("result");
    match result.as_ref().unwrap_or(object).get_elements("tools") {
        Some(tools) => tools,
        None if find_schema(object).is_some() => vec![document.json],
        None => Vec::new(),
    }
}

/// Returns whether a response to `tools/list` is followed by another page.
fn has_more(object: &ParsedObject<'_>) -> bool {
    let result = object.get_object("result");
    let cursor = result.as_ref().unwrap_or(object).get("nextCursor");
    cursor.is_some_and(|cursor| !cursor.is_null())
}

/// What one entry of a list of tools declares.
enum ListedTool {
    Declared(ToolDeclaration),
    /// The API runs it itself.
    OfApi,
    Nameless,
}

/// Parses one tool.
fn parse_declaration<'a>(tool: &ParsedObject<'a>) -> Result<ListedTool, DocumentError<'a>> {
    let kind = tool.get_text("type");
    let function = tool.get_object("function");
    let body = function.as_ref().unwrap_or(tool);
    let schema = find_schema(body);
    let is_own = matches!(kind.as_deref(), None | Some("function" | "custom"));
    if !is_own && schema.is_none() {
        return Ok(ListedTool::OfApi);
    }
    let name = body
        .get_unique_text("name")?
        .filter(|name| !name.is_empty());
    let Some(name) = name else {
        return Ok(ListedTool::Nameless);
    };
    let hints = tool.get_object("annotations");
    let hint = |key| {
        let value = hints.as_ref().and_then(|hints| hints.get(key));
        value.is_some_and(|value| value.get() == "true")
    };
    let any_object = r#"{"type":"object"}"#;
    let schema = RawValue::from_string(schema.map_or(any_object, JsonText::get).to_owned())
        .map_err(|error| DocumentError::new(tool.json(), error.to_string()))?;
    Ok(ListedTool::Declared(ToolDeclaration {
        name: name.into_owned(),
        description: body
            .get_text("description")
            .unwrap_or_default()
            .into_owned(),
        input_schema: schema,
        read_only: hint("readOnlyHint"),
        idempotent: hint("idempotentHint"),
    }))
}

fn find_schema<'a>(tool: &ParsedObject<'a>) -> Option<JsonText<'a>> {
    SCHEMA_KEYS
        .iter()
        .find_map(|key| tool.get(key).filter(|schema| !schema.is_null()))
}
