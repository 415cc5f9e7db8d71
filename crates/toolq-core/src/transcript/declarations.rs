//! Reads tool declarations made for other programs: the `tools` of a recorded request of any vendor, an array of tools, a
//! single tool, or an MCP server's response to `tools/list`.

use std::borrow::Cow;
use std::collections::HashSet;

use serde_json::Value;
use serde_json::value::RawValue;

use crate::json::{JsonEdits, JsonText, ParsedObject, describe_parse_error};
use crate::transcript::document_frames::{self, DocumentError, DocumentVisitor, InputDocument};
use crate::transcript::input_source::{InputError, InputSource, OffsetError};

/// Keys under which vendors put the schema of a tool's input.
const SCHEMA_KEYS: [&str; 5] = [
    "input_schema",
    "inputSchema",
    "parametersJsonSchema",
    "parameters_json_schema",
    "parameters",
];

/// Keys under which Gemini's API and its libraries put lists of tools.
const DECLARATION_LIST_KEYS: [&str; 2] = ["functionDeclarations", "function_declarations"];

/// The types of schemas in Gemini's API, as JSON.
const UPPERCASE_TYPES: [&str; 6] = [
    "\"OBJECT\"",
    "\"ARRAY\"",
    "\"STRING\"",
    "\"NUMBER\"",
    "\"INTEGER\"",
    "\"BOOLEAN\"",
];

/// How deep schemas are nested in which types are looked for.
const MAX_SCHEMA_DEPTH: usize = 64;

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
        schema
            .err()
            .map(|error| describe_parse_error("it", self.input_schema.get(), &error))
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
                    let key = || object.members().first().map(|(key, _)| key.clone());
                    let name = name.or_else(key).map(Cow::into_owned);
                    self.found.api_tools.extend(name);
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
    let listed = match (document.json.elements(), &document.object) {
        (Some(tools), _) => tools,
        (None, Some(object)) => {
            let result = object
                .get_object("result")
                .or_else(|| object.get_object("toolConfig"));
            match result.as_ref().unwrap_or(object).get_elements("tools") {
                Some(tools) => tools,
                None if find_schema(object).is_some() || is_wrapped(object) => vec![document.json],
                None => Vec::new(),
            }
        }
        (None, None) => Vec::new(),
    };
    listed.into_iter().flat_map(unwrap_tools).collect()
}

/// Returns the tools of an entry of a list, which may be a list itself (Gemini), or wrap a tool (Bedrock).
fn unwrap_tools(entry: JsonText) -> Vec<JsonText> {
    let Some(object) = entry.object() else {
        return vec![entry];
    };
    let mut lists = DECLARATION_LIST_KEYS
        .iter()
        .filter_map(|key| object.get_elements(key));
    lists
        .next()
        .or_else(|| object.get("toolSpec").map(|tool| vec![tool]))
        .unwrap_or_else(|| vec![entry])
}

fn is_wrapped(object: &ParsedObject) -> bool {
    let mut keys = DECLARATION_LIST_KEYS.iter().chain(&["toolSpec"]);
    keys.any(|key| object.has_value(key))
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
    let is_own = match kind.as_deref() {
        Some(kind) => matches!(kind, "function" | "custom"),
        // Gemini's and Bedrock's own tools have only a key that says which one it is.
        None => body.has_value("name") || body.members().len() != 1,
    };
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
    let schema = schema.map_or_else(|| r#"{"type":"object"}"#.to_owned(), with_lowercase_types);
    let schema = RawValue::from_string(schema)
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

/// Returns a schema in which types are in lower case: Gemini's API has them in upper case, too.
fn with_lowercase_types(schema: JsonText) -> String {
    let mut edits = JsonEdits::new(schema.get());
    lower_types(schema, MAX_SCHEMA_DEPTH, &mut edits);
    edits.apply()
}

fn lower_types<'a>(value: JsonText<'a>, depth: usize, edits: &mut JsonEdits<'a>) {
    let Some(depth) = depth.checked_sub(1) else {
        return;
    };
    if let Some(object) = value.object() {
        for (key, member) in object.members() {
            let is_type = UPPERCASE_TYPES.contains(&member.get());
            if key == "type" && is_type {
                edits.replace(*member, member.get().to_lowercase());
            } else {
                lower_types(*member, depth, edits);
            }
        }
    }
    for element in value.elements().into_iter().flatten() {
        lower_types(element, depth, edits);
    }
}

fn find_schema<'a>(tool: &ParsedObject<'a>) -> Option<JsonText<'a>> {
    let schema = SCHEMA_KEYS
        .iter()
        .find_map(|key| tool.get(key).filter(|schema| !schema.is_null()))?;
    // Bedrock wraps it once more.
    let wrapped = schema
        .object()
        .filter(|wrapper| wrapper.members().len() == 1);
    Some(
        wrapped
            .and_then(|wrapper| wrapper.get("json"))
            .unwrap_or(schema),
    )
}
