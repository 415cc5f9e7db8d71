//! Resolves the schema that the inputs of a tool must match.

use std::borrow::Cow;

use serde_json::{Value, json};

use crate::json_schema::{bundle_schema, is_simple_schema};
use crate::tools_file::keys::ToolFile;
use crate::tools_file::resolve::context::CheckContext;
use crate::tools_file::resolve::server_tools::{ServerTools, find_schema_problem};
use crate::tools_file::resolve::unlocked_servers::takes_server_schema;
use crate::tools_file::spanned::Spanned;

/// Accepts every value.
static ANY_VALUE_SCHEMA: Value = Value::Bool(true);

/// Returns the schema of the tool's input, bundled with the files that it refers to. If the schema is missing, returns
/// one that accepts everything, so that the templates aren't reported too. If a tool passes its input to a server
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

/// Checks the schema in the file, and returns it bundled with the files that it refers to.
fn check_declared_schema<'f>(
    name: &str,
    schema: &'f Spanned<Value>,
    context: &mut CheckContext<'_, '_>,
) -> Cow<'f, Value> {
    let keys = ["tools", name, "input_schema"];
    let mut effective_schema = Cow::Borrowed(&schema.value);
    if is_simple_schema(&schema.value) {
        context.warn_about_invalid_defaults(&schema.value, &keys);
    } else if context.check_schema(&schema.value, &keys) {
        context.warn_about_misspelled_keywords(&schema.value, &keys);
        context.warn_about_invalid_defaults(&schema.value, &keys);
        effective_schema = bundle_declared_schema(schema, &keys, context);
    }
    if !is_object_schema(&effective_schema) {
        context.diagnostics.error(
            context.tree.span_at(&keys, "/type"),
            "an input is an object, so its schema must say `type: object`",
            "",
            "declare the inputs under `properties`",
        );
    }
    effective_schema
}

fn bundle_declared_schema<'f>(
    schema: &'f Spanned<Value>,
    keys: &[&str],
    context: &mut CheckContext<'_, '_>,
) -> Cow<'f, Value> {
    let dir = context.schema_dir(keys);
    match bundle_schema(&schema.value, &dir) {
        Ok(None) => {}
        Ok(Some(bundled)) => return Cow::Owned(bundled),
        // Inputs are checked where only the directory of tools.yaml is known.
        Err(why) if dir != context.dir => context.diagnostics.error(
            schema.key_span,
            format!("this schema can't refer to a file: {why}"),
            "",
            "copy what it refers to into `$defs`",
        ),
        Err(why) => context.diagnostics.warning(
            schema.key_span,
            format!("`toolq tools` prints a reference to a file, which no model can follow: {why}"),
            "",
            "copy what it refers to into `$defs`",
        ),
    }
    Cow::Borrowed(&schema.value)
}

/// Whether a schema is for objects, as the APIs require. With a `$ref`, the type may be declared elsewhere.
fn is_object_schema(schema: &Value) -> bool {
    match (schema, schema.get("type")) {
        (Value::Object(_), Some(kind)) => kind == "object",
        (Value::Object(keywords), None) => keywords.contains_key("$ref"),
        _ => false,
    }
}
