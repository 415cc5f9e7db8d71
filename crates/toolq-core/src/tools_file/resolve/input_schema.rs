//! Resolves the schema that the inputs of a tool must match.

use std::borrow::Cow;

use serde_json::{Value, json};

use crate::json::find_lost_digits;
use crate::tools_file::keys::ToolFile;
use crate::tools_file::resolve::context::{CheckContext, SchemaPlace};
use crate::tools_file::resolve::regular_file::read_regular_file;
use crate::tools_file::resolve::server_tools::{ServerTools, find_schema_problem};
use crate::tools_file::resolve::unlocked_servers::takes_server_schema;
use crate::tools_file::spanned::Spanned;
use crate::types::Span;

/// Maximum size of a file with a schema.
const MAX_FILE_BYTES: u64 = 4 << 20;

/// Accepts every value.
static ANY_VALUE_SCHEMA: Value = Value::Bool(true);

/// Returns the schema of the tool's input. If it is missing, returns one that accepts everything, so that the templates
/// aren't reported too. If a tool passes its input to a server
/// unchanged, its schema comes from the lock, unless the file has one.
pub(crate) fn resolve_input_schema<'f>(
    name: &str,
    file: &'f Spanned<ToolFile>,
    server_tools: &ServerTools<'f>,
    context: &mut CheckContext<'_, '_>,
) -> Cow<'f, Value> {
    let field = &file.value.input_schema;
    if file.value.describe.spanned().is_some() {
        if let Some(schema) = field.spanned() {
            context.diagnostics.error(
                schema.key_span,
                format!("`{name}` has both `input_schema` and `describe`"),
                "which one applies?",
                "remove one of them: `describe` prints the schema",
            );
        }
        return Cow::Owned(json!({"type": "object"}));
    }
    match field.spanned() {
        Some(schema) => check_declared_schema(name, schema, context),
        None => find_undeclared_schema(name, file, server_tools, context),
    }
}

/// Returns the schema of a tool whose file has none: that of its server's tool, or one that accepts everything.
fn find_undeclared_schema<'f>(
    name: &str,
    file: &'f Spanned<ToolFile>,
    server_tools: &ServerTools<'f>,
    context: &mut CheckContext<'_, '_>,
) -> Cow<'f, Value> {
    if server_tools.awaits_list(name, &file.value) {
        return Cow::Owned(json!({"type": "object"}));
    }
    let lock = server_tools.tool_lock(name, &file.value.mcp);
    let gets_input = takes_server_schema(&file.value);
    if let Some(lock) = lock.filter(|_| gets_input) {
        let schema = &lock.definition.input_schema;
        if let Some(problem) = find_schema_problem(schema) {
            context.diagnostics.error(
                file.key_span,
                format!("the input schema of `{name}` in tools.lock can't be used: {problem}"),
                "",
                "write an `input_schema` of your own",
            );
        }
        return Cow::Borrowed(schema);
    }
    let is_missing = file.value.input_schema.is_missing();
    if is_missing && !(gets_input && server_tools.is_being_written()) {
        context.diagnostics.error(
            file.key_span,
            format!("`{name}` has no `input_schema`"),
            "",
            if gets_input {
                "write one, or take the server's own: `toolq servers lock` asks for it"
            } else {
                "a tool without inputs has `input_schema: {type: object, properties: {}}`"
            },
        );
    }
    Cow::Borrowed(&ANY_VALUE_SCHEMA)
}

/// Checks the schema that tools.yaml holds, or that is in the file that it names.
fn check_declared_schema<'f>(
    name: &str,
    field: &'f Spanned<Value>,
    context: &mut CheckContext<'_, '_>,
) -> Cow<'f, Value> {
    let (schema, file) = match &field.value {
        Value::String(file) => match read_schema_file(file, field.span, context) {
            Some(schema) => (Cow::Owned(schema), Some(file.as_str())),
            None => return Cow::Borrowed(&ANY_VALUE_SCHEMA),
        },
        schema => (Cow::Borrowed(schema), None),
    };
    let keys = ["tools", name, "input_schema"];
    let place = SchemaPlace { keys: &keys, file };
    if context.check_schema(&schema, place) {
        context.warn_about_misspelled_keywords(&schema, place);
        context.warn_about_invalid_defaults(&schema, place);
    }
    if !is_object_schema(&schema) {
        context.diagnostics.error(
            context.tree.span_at(&keys, "/type"),
            "an input is an object, so its schema must say `type: object`",
            "",
            "declare the inputs under `properties`",
        );
    }
    schema
}

/// Returns the schema in a file, whose path is relative to the file that names it.
fn read_schema_file(name: &str, span: Span, context: &mut CheckContext<'_, '_>) -> Option<Value> {
    let path = context
        .dir
        .join(context.diagnostics.sources().dir_of(span))
        .join(name);
    let text = read_regular_file(&path, MAX_FILE_BYTES);
    let schema =
        text.and_then(
            |text| match (serde_json::from_str(&text), find_lost_digits(&text)) {
                (Err(error), _) => Err(format!("it isn't JSON: {error}")),
                (Ok(_), Some(integer)) => Err(format!("it has {integer}")),
                (Ok(schema), None) => Ok(schema),
            },
        );
    match schema {
        Ok(schema) => {
            context.schema_files.insert(path);
            Some(schema)
        }
        Err(why) => {
            context.diagnostics.error(
                span,
                format!("the schema in {name} can't be used: {why}"),
                "",
                "write a schema here, or the path of a JSON file that holds one, relative to this file",
            );
            None
        }
    }
}

/// Whether a schema is for objects, as the APIs require. With a `$ref`, the type may be declared elsewhere.
fn is_object_schema(schema: &Value) -> bool {
    match (schema, schema.get("type")) {
        (Value::Object(_), Some(kind)) => kind == "object",
        (Value::Object(keywords), None) => keywords.contains_key("$ref"),
        _ => false,
    }
}
