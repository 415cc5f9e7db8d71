//! The tools of servers that need no entry under `tools`: those that tools.lock has, and those of servers that it doesn't
//! have, which have to be asked.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use data_encoding::HEXLOWER;
use globset::GlobMatcher;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::json_schema::{SchemaError, find_schema_errors, leave_out_unusable};
use crate::tools_file::context::{Diagnostics, ProgramDefaults, ToolContext};
use crate::tools_file::spanned::{Field, Spanned, SpannedTable};
use crate::tools_file::tables::arguments::resolve_wrapper;
use crate::tools_file::tables::http::{McpFile, ServersByName};
use crate::tools_file::tables::rules::compile_glob;
use crate::tools_file::tables::sandbox::{check_shared_sandbox, layer_sandboxes, resolve_sandbox};
use crate::tools_file::tables::server::{ServerFile, check_tool_settings, resolve_server};
use crate::tools_file::tables::tool::{Defaults, ToolFile};
use crate::tools_lock::{LockUse, ToolsLock};
use crate::types::{Effect, HintPolicy, ServerConfig, ServerLock, Span, ToolLock};

/// How many bytes of a digest tell names apart.
const DIGEST_BYTES: usize = 3;

/// What a file and its lock say about the tools of servers.
pub(crate) struct ServerTools<'f> {
    tools: &'f Field<SpannedTable<ToolFile>>,
    servers: &'f Field<SpannedTable<ServerFile>>,
    lock: Option<&'f ToolsLock>,
    use_of_lock: LockUse<'f>,
}

/// A tool that is only in the lock.
pub(crate) struct UndeclaredTool {
    /// The name for models.
    pub(crate) name: String,
    /// The entry that it would have under `tools`.
    pub(crate) entry: Spanned<ToolFile>,
    /// The schema of its input.
    pub(crate) schema: Value,
}

/// Resolves all servers. One that can't be used is left out, with an error.
pub(crate) fn resolve_servers(
    server_tools: &ServerTools<'_>,
    defaults: &Defaults,
    programs: &ProgramDefaults,
    diagnostics: &mut Diagnostics,
) -> ServersByName {
    // A server serves many calls, so nothing about it can depend on the input of one.
    let no_input = json!({"type": "object", "properties": {}, "additionalProperties": false});
    let mut servers = BTreeMap::new();
    for (name, server) in server_tools.servers.entries() {
        let mut context = ToolContext {
            why_no_input: Some(
                "a server serves many calls, so nothing about it can come from an input",
            ),
            sandbox: resolve_sandbox(
                &server
                    .value
                    .sandbox
                    .over(&defaults.settings.tool.sandbox, layer_sandboxes),
            ),
            ..ToolContext::new(&no_input, programs, diagnostics)
        };
        check_shared_sandbox(&server.value.sandbox, context.diagnostics);
        check_tool_settings(name, server, context.diagnostics);
        if let Some(defaults) = server.value.defaults.value() {
            defaults.settings.check(context.diagnostics);
        }
        context.wrapper = resolve_wrapper(&server.value.wrapper, &mut context);
        let lock = server_tools.server_lock(name);
        let is_unlocked = server_tools.is_unlocked(name, &server.value);
        if let Some(config) = resolve_server(name, lock, server, defaults, &mut context) {
            let config = ServerConfig {
                compares_tools: lock.is_some() || is_unlocked,
                was_legacy: config.was_legacy && !server_tools.is_being_written(),
                ..config
            };
            servers.insert(name.to_owned(), Arc::new(config));
        }
    }
    servers
}

impl<'f> ServerTools<'f> {
    pub(crate) fn new(
        tools: &'f Field<SpannedTable<ToolFile>>,
        servers: &'f Field<SpannedTable<ServerFile>>,
        lock: LockUse<'f>,
    ) -> Self {
        Self {
            tools,
            servers,
            lock: lock.lock(),
            use_of_lock: lock,
        }
    }

    /// Returns whether a lock is about to be written, which will have what isn't known yet.
    pub(crate) fn is_being_written(&self) -> bool {
        matches!(self.use_of_lock, LockUse::Rewrite(_))
    }

    /// Returns whether the definitions hold what servers have announced so far, beside what the lock says.
    pub(crate) fn has_announced(&self) -> bool {
        matches!(self.use_of_lock, LockUse::Announced(_))
    }

    pub(crate) fn lock(&self) -> Option<&'f ToolsLock> {
        self.lock
    }

    pub(crate) fn server_lock(&self, server: &str) -> Option<&'f ServerLock> {
        self.lock?.servers.get(server)
    }

    /// Returns the lock of the tool that `mcp` of the tool `name` calls.
    pub(crate) fn tool_lock(&self, name: &str, mcp: &Field<McpFile>) -> Option<&'f ToolLock> {
        let mcp = mcp.value()?;
        let tool = mcp.tool.value().map_or(name, String::as_str);
        self.server_lock(mcp.server.value()?)?.tools.get(tool)
    }

    /// Returns the defaults for the tools of the server that `mcp` names.
    pub(crate) fn defaults(&self, mcp: &Field<McpFile>) -> Option<&'f Defaults> {
        self.server_of(mcp)?.defaults.value()
    }

    /// Returns the effect that a tool has by the lock. Without one, a server's word counts for nothing.
    pub(crate) fn effect(&self, name: &str, mcp: &Field<McpFile>) -> Option<Effect> {
        let lock = self.tool_lock(name, mcp)?;
        let policy = self.server_of(mcp)?.hints.value();
        match policy.copied().unwrap_or_default() {
            HintPolicy::Ignore => None,
            HintPolicy::Locked => Some(lock.effect).filter(|effect| *effect != Effect::Write),
            HintPolicy::Trust => lock.hint,
        }
    }

    fn server_of(&self, mcp: &Field<McpFile>) -> Option<&'f ServerFile> {
        let name = mcp.value()?.server.value()?;
        self.servers
            .entries()
            .find_map(|(key, server)| (key == name).then_some(&server.value))
    }

    /// Lists the tools that are only in the lock, and reports those that can't be used. A tool that is declared is not
    /// offered by its own name, too: that would undo what its declaration narrows.
    pub(crate) fn list_undeclared(&self, diagnostics: &mut Diagnostics) -> Vec<UndeclaredTool> {
        let declared = self.declared_tools();
        let mut names: BTreeMap<String, String> = BTreeMap::new();
        for (name, _) in self.tools.entries() {
            names.insert(name.to_owned(), "a tool under `tools`".to_owned());
        }
        let mut found = Vec::new();
        for (server, file) in self.servers.entries() {
            let Some(lock) = self.server_lock(server) else {
                if self.is_unlocked(server, &file.value) {
                    warn_about_missing_lock(server, file, diagnostics);
                }
                continue;
            };
            let globs = read_globs(&file.value.tools, lock, diagnostics);
            let is_chosen = |tool: &str| {
                let globs = globs.as_ref();
                globs.is_none_or(|globs| globs.iter().any(|glob| glob.is_match(tool)))
            };
            let tools: Vec<(&String, &ToolLock)> = lock
                .tools
                .iter()
                .filter(|(tool, _)| is_chosen(tool) && !declared.contains(&(server, tool)))
                .collect();
            let own_names = tools.iter().map(|(tool, _)| tool.as_str());
            let own_names = model_names(server, &file.value.prefix, own_names);
            for ((tool, tool_lock), name) in tools.into_iter().zip(own_names) {
                let owner = format!("the tool `{tool}` of the server `{server}`");
                if let Some(other) = names.insert(name.clone(), owner.clone()) {
                    diagnostics.error(
                        file.key_span,
                        format!("`{name}` would be {owner}, and is {other}"),
                        "give the server another `prefix`, or leave the tool out of its `tools`",
                    );
                    continue;
                }
                match usable_schema(&owner, tool_lock, file.key_span, diagnostics) {
                    Ok(schema) => found.push(UndeclaredTool {
                        name,
                        entry: entry_for(server, tool, file.key_span),
                        schema: schema.into_owned(),
                    }),
                    Err(problem) => diagnostics.warning(
                        file.key_span,
                        format!("{owner} is left out: its input schema can't be used: {problem}"),
                        "declare it under `tools` with a schema of your own",
                    ),
                }
            }
        }
        found
    }

    /// Returns the tools of servers that are declared under `tools`.
    fn declared_tools(&self) -> BTreeSet<(&'f str, &'f str)> {
        self.tools
            .entries()
            .filter_map(|(name, tool)| {
                let mcp = tool.value.mcp.value()?;
                let tool = mcp.tool.value().map_or(name, String::as_str);
                Some((mcp.server.value()?.as_str(), tool))
            })
            .collect()
    }
}

/// Reads the globs of `tools`; `None` chooses every tool.
fn read_globs(
    tools: &Field<Vec<Field<String>>>,
    lock: &ServerLock,
    diagnostics: &mut Diagnostics,
) -> Option<Vec<GlobMatcher>> {
    tools.spanned()?;
    let mut globs = Vec::new();
    for item in tools.items() {
        let Some(glob) = compile_glob(item, diagnostics) else {
            continue;
        };
        if !lock.tools.keys().any(|tool| glob.is_match(tool)) {
            diagnostics.warning(
                (item.span, "matches nothing"),
                format!("no tool of the server matches `{}`", item.value),
                "a glob matches the server's own names, without the prefix",
            );
        }
        globs.push(glob);
    }
    Some(globs)
}

/// Returns the name for models. They accept only letters, digits, `_` and `-`.
pub(crate) fn model_name(server: &str, prefix: &Field<String>, tool: &str) -> String {
    let default = || format!("{server}_");
    let prefix = prefix.value().cloned().unwrap_or_else(default);
    let is_portable = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    let replace = |c| if is_portable(c) { c } else { '_' };
    prefix.chars().chain(tool.chars()).map(replace).collect()
}

/// Returns the names for models of a server's tools. Of those that would be the same, each that isn't the server's own name gets a
/// part of the digest of that name.
fn model_names<'t>(
    server: &str,
    prefix: &Field<String>,
    tools: impl Iterator<Item = &'t str> + Clone,
) -> Vec<String> {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for tool in tools.clone() {
        *counts.entry(model_name(server, prefix, tool)).or_default() += 1;
    }
    let name_of = |tool: &str| {
        let name = model_name(server, prefix, tool);
        if counts[&name] == 1 || name.ends_with(tool) {
            return name;
        }
        let digest = HEXLOWER.encode(&Sha256::digest(tool)[..DIGEST_BYTES]);
        format!("{name}_{digest}")
    };
    tools.map(name_of).collect()
}

fn entry_for(server: &str, tool: &str, span: Span) -> Spanned<ToolFile> {
    fn spanned<T>(value: T, span: Span) -> Spanned<T> {
        Spanned {
            key_span: span,
            span,
            value,
        }
    }
    let mcp = McpFile {
        server: Field::Valid(Box::new(spanned(server.to_owned(), span))),
        tool: Field::Valid(Box::new(spanned(tool.to_owned(), span))),
        arguments: Field::Missing,
        result: Field::Missing,
    };
    let file = ToolFile {
        mcp: Field::Valid(Box::new(spanned(mcp, span))),
        ..ToolFile::default()
    };
    spanned(file, span)
}

/// Returns the schema of a server's tool as far as it can be checked, and warns of what can't.
///
/// # Errors
/// It can't be used at all. Says why.
pub(crate) fn usable_schema<'l>(
    owner: &str,
    lock: &'l ToolLock,
    place: Span,
    diagnostics: &mut Diagnostics,
) -> Result<Cow<'l, Value>, String> {
    let describe = |error: &SchemaError| {
        format!("{} {}", error.pointer, error.message)
            .trim_start()
            .to_owned()
    };
    let whole = &lock.definition.input_schema;
    let (schema, unchecked) = match whole {
        Value::Object(_) | Value::Bool(_) => leave_out_unusable(whole),
        _ => {
            diagnostics.warning(
                place,
                format!("{owner} has no input schema, so any object is its input"),
                UNCHECKED_HINT,
            );
            (Cow::Owned(json!({})), Vec::new())
        }
    };
    if let Some(error) = find_schema_errors(&schema).first() {
        return Err(describe(error));
    }
    let Some(schema) = for_objects(schema) else {
        return Err("it isn't for objects".to_owned());
    };
    for error in unchecked {
        let what = describe(&error);
        diagnostics.warning(
            place,
            format!("a part of the input schema of {owner} isn't checked: {what}"),
            UNCHECKED_HINT,
        );
    }
    Ok(schema)
}

const UNCHECKED_HINT: &str = "the server checks its inputs itself; to check them here, too, declare the tool under `tools` with a schema of your own";

/// The keywords of a choice between schemas.
const CHOICES: [&str; 3] = ["anyOf", "oneOf", "allOf"];

/// Returns a schema that says that it is for objects, unless it is for none.
fn for_objects(schema: Cow<'_, Value>) -> Option<Cow<'_, Value>> {
    match schema.get("type") {
        Some(Value::Array(kinds)) => kinds.iter().any(|kind| kind == "object").then_some(schema),
        Some(kind) => (kind == "object").then_some(schema),
        // What it refers to says so.
        None if schema.get("$ref").is_some() => Some(schema),
        // APIs of models refuse a choice at the top, and whatever else stands in the request with it.
        None if CHOICES.iter().any(|key| schema.get(key).is_some()) => None,
        None => match schema.into_owned() {
            Value::Bool(false) => None,
            Value::Object(mut members) => {
                members.insert("type".to_owned(), "object".into());
                Some(Cow::Owned(Value::Object(members)))
            }
            _ => Some(Cow::Owned(json!({"type": "object"}))),
        },
    }
}

impl<'f> ServerTools<'f> {
    /// Returns the servers that have to be asked for what the file doesn't say about their tools.
    pub(crate) fn unlocked_servers(&self) -> impl Iterator<Item = (&'f str, &'f ServerFile)> {
        let is_final = self.is_being_written() || self.has_announced();
        self.servers
            .entries()
            .filter(move |_| !is_final)
            .filter(|(name, server)| self.is_unlocked(name, &server.value))
            .map(|(name, server)| (name, &server.value))
    }

    /// Returns whether the lock lacks a server of which something has to be known.
    pub(crate) fn is_unlocked(&self, name: &str, keys: &ServerFile) -> bool {
        let names_tools =
            !keys.tools.is_missing() || !keys.prefix.is_missing() || !keys.hints.is_missing();
        let mut declared = self.declared_of(name).peekable();
        let needs_list =
            names_tools || declared.peek().is_none() || declared.any(takes_server_schema);
        needs_list && self.server_lock(name).is_none()
    }

    fn declared_of(&self, server: &str) -> impl Iterator<Item = &'f ToolFile> {
        self.tools
            .entries()
            .map(|(_, tool)| &tool.value)
            .filter(move |tool| {
                let mcp = tool.mcp.value();
                mcp.and_then(|mcp| mcp.server.value())
                    .is_some_and(|name| name == server)
            })
    }

    /// Returns whether the definition of a declared tool is what its server will say.
    pub(crate) fn awaits_list(&self, name: &str, tool: &ToolFile) -> bool {
        if !takes_server_schema(tool) || self.is_being_written() {
            return false;
        }
        let Some(server) = tool.mcp.value().and_then(|mcp| mcp.server.value()) else {
            return false;
        };
        let is_known = self.servers.entries().any(|(key, _)| key == server);
        is_known
            && self.tool_lock(name, &tool.mcp).is_none()
            && (self.has_announced() || self.server_lock(server).is_none())
    }
}

/// Whether a tool of a server gets the input as its arguments, so that the server's schema is that of the input.
pub(crate) fn takes_server_schema(tool: &ToolFile) -> bool {
    let mcp = tool.mcp.value();
    mcp.is_some_and(|mcp| mcp.arguments.is_missing())
        && tool.input_schema.is_missing()
        && tool.describe.is_missing()
}

/// Says that a server has to be asked in each run.
fn warn_about_missing_lock(
    server: &str,
    file: &Spanned<ServerFile>,
    diagnostics: &mut Diagnostics,
) {
    diagnostics.warning(
        (file.key_span, "not locked"),
        format!("the server `{server}` isn't locked: it is asked for its tools in each run, and whatever it says then holds"),
        "`toolq servers lock` asks it once, and writes what it says beside this file",
    );
}
