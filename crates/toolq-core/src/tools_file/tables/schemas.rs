//! The schemas of a tool, and what the APIs accept of its declaration.

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::json::find_lost_digits;
use crate::json_schema::CompiledSchema;
use crate::tools_file::context::{CheckContext, SchemaPlace, ToolContext};
use crate::tools_file::spanned::Spanned;
use crate::tools_file::tables::env::read_regular_file;
use crate::tools_file::tables::server_tools::{ServerTools, takes_server_schema, usable_schema};
use crate::tools_file::tables::tool::ToolFile;
use crate::types::{OutputKind, Span};

// Resolves the schema that the inputs of a tool must match.

/// Maximum size of a file with a schema.
const MAX_FILE_BYTES: u64 = 4 << 20;

/// Accepts every value.
static ANY_VALUE_SCHEMA: Value = Value::Bool(true);

/// Returns the schema of the tool's input. If it is missing, returns one that accepts everything, so that the templates
/// aren't reported too. If a tool passes its input to a server unchanged, its schema comes from the lock, unless the file
/// has one.
pub(crate) fn resolve_input_schema<'f>(
    name: &str,
    file: &'f Spanned<ToolFile>,
    server_tools: &ServerTools<'f>,
    context: &mut CheckContext<'_>,
) -> Cow<'f, Value> {
    let field = &file.value.input_schema;
    if file.value.describe.spanned().is_some() {
        if let Some(schema) = field.spanned() {
            context.diagnostics.error(
                (schema.key_span, "which one applies?"),
                format!("`{name}` has both `input_schema` and `describe`"),
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
    context: &mut CheckContext<'_>,
) -> Cow<'f, Value> {
    if server_tools.awaits_list(name, &file.value) {
        return Cow::Owned(json!({"type": "object"}));
    }
    let lock = server_tools.tool_lock(name, &file.value.mcp);
    let gets_input = takes_server_schema(&file.value);
    if let Some(lock) = lock.filter(|_| gets_input) {
        let owner = format!("`{name}` in the lock");
        match usable_schema(&owner, lock, file.key_span, context.diagnostics) {
            Ok(schema) => return schema,
            Err(problem) => context.diagnostics.error(
                file.key_span,
                format!("the input schema of {owner} can't be used: {problem}"),
                "write an `input_schema` of your own",
            ),
        }
        return Cow::Borrowed(&lock.definition.input_schema);
    }
    let is_missing = file.value.input_schema.is_missing();
    if is_missing && !(gets_input && server_tools.is_being_written()) {
        context.diagnostics.error(
            file.key_span,
            format!("`{name}` has no `input_schema`"),
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
    context: &mut CheckContext<'_>,
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
            "declare the inputs under `properties`",
        );
    }
    schema
}

/// Returns the schema in a file, whose path is relative to the file that names it.
fn read_schema_file(name: &str, span: Span, context: &mut CheckContext<'_>) -> Option<Value> {
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

// Resolves the schema that the output of a tool must match.

/// Returns the compiled schema of the tool's output. Returns `None` if there is no schema, or if it can't be used.
pub(crate) fn resolve_output_schema(
    name: &str,
    tool: &ToolFile,
    output: OutputKind,
    context: &mut CheckContext<'_>,
) -> Option<Arc<CompiledSchema>> {
    let schema = tool.output_schema.spanned()?;
    if let Some(agent) = tool.agent.spanned() {
        context.diagnostics.error(
            agent.key_span,
            "an agent answers with text, which `output_schema` can't check",
            "remove `output_schema`",
        );
        return None;
    }
    if output != OutputKind::Json {
        context.diagnostics.error(
            schema.key_span,
            "`output_schema` is only for `output: json`",
            "write `output: json` next to it",
        );
        return None;
    }
    let keys = ["tools", name, "output_schema"];
    let place = SchemaPlace {
        keys: &keys,
        file: None,
    };
    if !context.check_schema(&schema.value, place) {
        return None;
    }
    context.warn_about_misspelled_keywords(&schema.value, place);
    CompiledSchema::compile(&schema.value).ok().map(Arc::new)
}

/// The longest name that any API accepts.
const MAX_TOOL_NAME_BYTES: usize = 128;

/// The longest name that all APIs accept, which is OpenAI's limit.
const MAX_PORTABLE_NAME_BYTES: usize = 64;

/// Checks a name. Every API accepts letters, digits, `_` and `-`. Some accept more, so other visible characters are
/// only a warning.
pub(crate) fn check_tool_name(name: &str, span: Span, context: &mut ToolContext<'_>) {
    let is_portable = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    if name.is_empty() || name.len() > MAX_TOOL_NAME_BYTES {
        context.diagnostics.error(
            span,
            "a tool's name must have 1 to 128 characters",
            "choose another name",
        );
    } else if name.chars().any(|c| c.is_control() || c.is_whitespace()) {
        context.diagnostics.error(
            span,
            "a tool's name can't contain spaces or control characters",
            "write `_` instead",
        );
    } else if !name.chars().all(is_portable) {
        context.diagnostics.warning(
            span,
            format!("some APIs reject the name `{name}`"),
            "letters, digits, `_` and `-` are accepted everywhere",
        );
    } else if name.len() > MAX_PORTABLE_NAME_BYTES {
        context.diagnostics.warning(
            span,
            format!("some APIs reject a name of {} characters", name.len()),
            "up to 64 are accepted everywhere",
        );
    }
}

/// Keywords that some APIs reject at the top of a schema.
const TOP_KEYWORDS: [&str; 3] = ["anyOf", "oneOf", "allOf"];

/// Checks the schema of a tool's input.
pub(crate) fn check_tool_schema(
    name: &str,
    schema: &Value,
    span: Span,
    context: &mut ToolContext<'_>,
) {
    for keyword in TOP_KEYWORDS {
        if schema.get(keyword).is_some() {
            context.diagnostics.warning(
                span,
                format!("some APIs reject `{keyword}` at the top of the input schema of `{name}`"),
                "write it into the schema of a property, or leave the check to the tool",
            );
        }
    }
    let properties = schema.get("properties").and_then(Value::as_object);
    let is_portable = |name: &String| {
        let has_letters = name
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.'));
        has_letters && (1..=MAX_PORTABLE_NAME_BYTES).contains(&name.len())
    };
    let mut names = properties
        .into_iter()
        .flat_map(|properties| properties.keys());
    if let Some(property) = names.find(|name| !is_portable(name)) {
        context.diagnostics.warning(
            span,
            format!("some APIs reject the property `{property}` of the input of `{name}`"),
            "up to 64 letters, digits, `_`, `-` and `.` are accepted everywhere",
        );
    }
}
