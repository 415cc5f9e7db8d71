//! Resolves all tools of a file, with what they share.

use std::borrow::Cow;
use std::path::Path;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::json::find_lost_digits;
use crate::json_schema::CompiledSchema;
use crate::tools_file::keys::{Defaults, ToolFile, ToolsFile};
use crate::tools_file::lints::when_schema::{self, WhenField};
use crate::tools_file::resolve::command_defaults::CommandDefaults;
use crate::tools_file::resolve::context::{CheckContext, SchemaPlace, ToolContext};
use crate::tools_file::resolve::diagnostics::Diagnostics;
use crate::tools_file::resolve::regular_file::read_regular_file;
use crate::tools_file::resolve::server::ServersByName;
use crate::tools_file::resolve::server_tools::{ServerTools, usable_schema};
use crate::tools_file::resolve::tool::{self, SharedSettings};
use crate::tools_file::resolve::tool_rules::ToolRules;
use crate::tools_file::resolve::unlocked_servers::takes_server_schema;
use crate::tools_file::resolve::{
    attempt_limits, normalizers, resource_limits, sandbox, start_limits,
};
use crate::tools_file::spanned::Spanned;
use crate::types::{MessageTemplates, OutputKind, Span, Tool};

/// What the tools refer to, resolved before them.
pub(crate) struct ToolParts<'p> {
    pub(crate) root: &'p Path,
    pub(crate) messages: &'p MessageTemplates,
    pub(crate) servers: &'p ServersByName,
    pub(crate) server_tools: &'p ServerTools<'p>,
    pub(crate) command_defaults: &'p CommandDefaults,
}

/// Resolves the tools of the file, in its order, followed by those that its servers announce.
pub(crate) fn resolve_tools(
    file: &ToolsFile,
    parts: &ToolParts<'_>,
    context: &mut CheckContext<'_, '_>,
) -> Vec<Arc<Tool>> {
    check_has_tools(file, context);
    let no_defaults = Defaults::default();
    let defaults = file.defaults.value().unwrap_or(&no_defaults);
    check_defaults(defaults, context.diagnostics);
    check_shared_approvals(file, context);
    let rules = ToolRules::read(&file.rules, context.diagnostics);
    let server_tools = parts.server_tools;
    let undeclared = server_tools.list_undeclared(context.diagnostics);
    let names = file.tools.entries().map(|(name, _)| name);
    let names = names.chain(undeclared.iter().map(|tool| &*tool.name));
    let names: Vec<&str> = names.collect();
    rules.warn_about_unused(&names, context.diagnostics);
    let normalizers = normalizers::resolve_normalizers(&file.normalize, context.diagnostics);
    let shared = SharedSettings {
        dir: context.dir,
        defaults,
        rules: &rules,
        normalizers: &normalizers,
        messages: parts.messages,
        servers: parts.servers,
        server_tools,
    };
    let mut tools = Vec::new();
    let resolve = |name: &str, tool, schema: &Value, diagnostics: &mut Diagnostics<'_>| {
        let mut tool_context = ToolContext {
            schema,
            why_no_input: None,
            root: parts.root,
            paths: Vec::new(),
            has_no_paths: false,
            command_defaults: parts.command_defaults,
            sandbox: None,
            wrapper: None,
            diagnostics,
        };
        tool::resolve_tool(name, tool, &shared, &mut tool_context)
    };
    for (name, tool) in file.tools.entries() {
        let schema = resolve_input_schema(name, tool, server_tools, context);
        when_schema::check_when(name, tool, &schema, context);
        let mut resolved = resolve(name, tool, &schema, context.diagnostics);
        resolved.awaits_list = server_tools.awaits_list(name, &tool.value);
        resolved.output_schema = resolve_output_schema(name, &tool.value, resolved.output, context);
        tools.push(Arc::new(resolved));
    }
    for tool in &undeclared {
        let resolved = resolve(&tool.name, &tool.entry, &tool.schema, context.diagnostics);
        tools.push(Arc::new(resolved));
    }
    tools
}

fn check_has_tools(file: &ToolsFile, context: &mut CheckContext<'_, '_>) {
    let has_host_tools = context.diagnostics.sources().host_text().is_some();
    let has_entries = !file.tools.is_missing() || file.servers.entries().next().is_some();
    // An included file that can't be read has an error of its own.
    let includes_others = !file.include.is_missing();
    if !has_entries && !includes_others && !has_host_tools {
        context.diagnostics.error(
            Span::default(),
            "the file has no `tools`",
            "",
            "add `tools:` with each tool below it, by name; `toolq init` writes an example",
        );
    }
}

/// Checks those defaults that are resolved anew for each tool.
fn check_defaults(defaults: &Defaults, diagnostics: &mut Diagnostics<'_>) {
    attempt_limits::check_timeout(&defaults.timeout, diagnostics);
    attempt_limits::check_retry(&defaults.retry, diagnostics);
    attempt_limits::check_max_output(&defaults.max_output, diagnostics);
    resource_limits::check_resource_limits(&defaults.limits, diagnostics);
    sandbox::check_shared_sandbox(&defaults.sandbox, diagnostics);
    start_limits::check_start_limits(&defaults.max_parallel, &defaults.rate, diagnostics);
}

/// Checks the `approve: {when: SCHEMA}` of the defaults and of each rule.
fn check_shared_approvals(file: &ToolsFile, context: &mut CheckContext<'_, '_>) {
    let defaults = file.defaults.value();
    if let Some(field) = defaults.and_then(|defaults| WhenField::of_approve(&defaults.approve)) {
        when_schema::check_shared_when(&field, &["defaults"], context);
    }
    for (index, rule) in file.rules.items().enumerate() {
        if let Some(field) = WhenField::of_approve(&rule.value.approve) {
            when_schema::check_shared_when(&field, &["rules", &index.to_string()], context);
        }
    }
}

// Resolves the schema that the inputs of a tool must match.

/// Maximum size of a file with a schema.
const MAX_FILE_BYTES: u64 = 4 << 20;

/// Accepts every value.
static ANY_VALUE_SCHEMA: Value = Value::Bool(true);

/// Returns the schema of the tool's input. If it is missing, returns one that accepts everything, so that the templates
/// aren't reported too. If a tool passes its input to a server unchanged, its schema comes from the lock, unless the file
/// has one.
fn resolve_input_schema<'f>(
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
        let owner = format!("`{name}` in tools.lock");
        match usable_schema(&owner, lock, file.key_span, context.diagnostics) {
            Ok(schema) => return schema,
            Err(problem) => context.diagnostics.error(
                file.key_span,
                format!("the input schema of {owner} can't be used: {problem}"),
                "",
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

// Resolves the schema that the output of a tool must match.

/// Returns the compiled schema of the tool's output. Returns `None` if there is no schema, or if it can't be used.
fn resolve_output_schema(
    name: &str,
    tool: &ToolFile,
    output: OutputKind,
    context: &mut CheckContext<'_, '_>,
) -> Option<Arc<CompiledSchema>> {
    let schema = tool.output_schema.spanned()?;
    if let Some(agent) = tool.agent.spanned() {
        context.diagnostics.error(
            agent.key_span,
            "an agent answers with text, which `output_schema` can't check",
            "",
            "remove `output_schema`",
        );
        return None;
    }
    if output != OutputKind::Json {
        context.diagnostics.error(
            schema.key_span,
            "`output_schema` is only for `output: json`",
            "",
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
