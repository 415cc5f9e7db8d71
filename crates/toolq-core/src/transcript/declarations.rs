//! Tools that are declared elsewhere: the `tools` of a recorded request (Anthropic, `OpenAI` chat, `OpenAI` responses), a
//! bare array of them, one of them, or an MCP server's answer to `tools/list`.

use std::borrow::Cow;
use std::collections::HashSet;

use serde_json::value::RawValue;

use crate::json::{Json, Object};
use crate::transcript::document::Document;
use crate::transcript::document_error::Complaint;
use crate::transcript::error::{Fault, InputError};
use crate::transcript::frames;
use crate::transcript::frames::Reader;
use crate::transcript::source::Source;

/// Where vendors keep the schema of a tool's input.
const SCHEMAS: [&str; 3] = ["input_schema", "inputSchema", "parameters"];

const EXPECTED: &str = "expected is a request with `tools`, an array of tools, or an MCP server's answer to `tools/list`";

/// A tool as a model was told of it.
#[derive(Debug, Clone)]
pub struct Declaration {
    /// Any string that an API takes.
    pub name: String,
    /// Empty where there is none.
    pub description: String,
    /// JSON Schema of its input, as it stood there.
    pub input_schema: Box<RawValue>,
    /// It looks only (MCP's `readOnlyHint`).
    pub read_only: bool,
    /// Twice is like once (MCP's `idempotentHint`).
    pub idempotent: bool,
}

/// The tools of a document, and what of it is no tool to declare.
#[derive(Debug, Default)]
pub struct Declarations {
    /// In the order of the input.
    pub tools: Vec<Declaration>,
    /// What an API runs by itself: it has no schema, and needs no backing.
    pub left_to_api: Vec<String>,
    /// The MCP server has more: its answer names the place where they go on (`nextCursor`).
    pub is_partial: bool,
}

/// The tools that `source` declares.
///
/// # Errors
/// It can't be read, is no JSON, or declares no tool; a tool has no name; two have the same.
pub fn declarations(mut source: Source, max_document: u64) -> Result<Declarations, InputError> {
    let mut reading = Declared::default();
    frames::read(&mut source, max_document, &mut reading)?;
    if reading.found.tools.is_empty() {
        let none = Fault::at(0, "the input declares no tools");
        return Err(source.locate(none.hint(EXPECTED)));
    }
    Ok(reading.found)
}

/// What was read so far.
#[derive(Default)]
struct Declared {
    found: Declarations,
    names: HashSet<String>,
}

impl Reader for Declared {
    fn document<'a>(&mut self, document: &Document<'a>) -> Result<(), Complaint<'a>> {
        for tool in listed(document) {
            let object = tool
                .object()
                .ok_or_else(|| Complaint::no_object("a tool", tool))?;
            let Some(declaration) = declaration(&object)? else {
                let name = object.text("name").or_else(|| object.text("type"));
                self.found.left_to_api.extend(name.map(Cow::into_owned));
                continue;
            };
            if !self.names.insert(declaration.name.clone()) {
                let name = declaration.name.escape_debug();
                return Err(Complaint::new(
                    tool,
                    format!("two tools are called `{name}`"),
                ));
            }
            self.found.tools.push(declaration);
        }
        self.found.is_partial |= document.object.as_ref().is_some_and(has_more);
        Ok(())
    }
}

/// The tools of a document.
fn listed<'a>(document: &Document<'a>) -> Vec<Json<'a>> {
    if let Some(tools) = document.json.list() {
        return tools;
    }
    let Some(object) = &document.object else {
        return Vec::new();
    };
    let answer = object.object("result");
    match answer.as_ref().unwrap_or(object).list("tools") {
        Some(tools) => tools,
        None if schema(object).is_some() => vec![document.json],
        None => Vec::new(),
    }
}

/// Whether an answer to `tools/list` is one page of several.
fn has_more(object: &Object<'_>) -> bool {
    let answer = object.object("result");
    let cursor = answer.as_ref().unwrap_or(object).get("nextCursor");
    cursor.is_some_and(|cursor| !cursor.is_null())
}

/// One tool; none where the API runs it by itself.
fn declaration<'a>(tool: &Object<'a>) -> Result<Option<Declaration>, Complaint<'a>> {
    let kind = tool.text("type");
    let function = tool.object("function");
    let body = function.as_ref().unwrap_or(tool);
    let schema = schema(body);
    let own = matches!(kind.as_deref(), None | Some("function" | "custom"));
    if !own && schema.is_none() {
        return Ok(None);
    }
    let name = body.text_once("name")?.filter(|name| !name.is_empty());
    let name = name.ok_or_else(|| Complaint::new(tool.json(), "this tool has no name"))?;
    let hints = tool.object("annotations");
    let hint = |key| {
        let value = hints.as_ref().and_then(|hints| hints.get(key));
        value.is_some_and(|value| value.get() == "true")
    };
    let any = r#"{"type":"object"}"#;
    let schema = RawValue::from_string(schema.map_or(any, Json::get).to_owned())
        .map_err(|error| Complaint::new(tool.json(), error.to_string()))?;
    Ok(Some(Declaration {
        name: name.into_owned(),
        description: body.text("description").unwrap_or_default().into_owned(),
        input_schema: schema,
        read_only: hint("readOnlyHint"),
        idempotent: hint("idempotentHint"),
    }))
}

fn schema<'a>(tool: &Object<'a>) -> Option<Json<'a>> {
    SCHEMAS
        .iter()
        .find_map(|key| tool.get(key).filter(|schema| !schema.is_null()))
}
