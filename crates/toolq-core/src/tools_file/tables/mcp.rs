//! `mcp`: a tool of a server.

use std::collections::BTreeMap;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::tools_file::context::ToolContext;
use crate::tools_file::spanned::{Field, Spanned};
use crate::tools_file::tables::http::{BodyFile, resolve_body_template};
use crate::types::{McpBacking, ResultParts, ServerConfig, ToolLock};

/// A tool of a server.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(deny_unknown_fields, extend("required" = ["server"]))]
pub struct McpFile {
    /// Name of the server, a key of `servers`.
    pub server: Field<String>,
    /// Name of the tool there. Default: the name of this tool.
    pub tool: Field<String>,
    /// Arguments to send: JSON with templates. Default: the input.
    #[schemars(with = "Field<Value>")]
    pub arguments: Field<BodyFile>,
    /// Which parts of the result the model reads. Default: what the server says.
    pub result: Field<ResultParts>,
}

/// Resolves `mcp` of the tool `name`; returns `None` if its server can't be used.
pub(crate) fn resolve_mcp(
    name: &str,
    file: &Spanned<McpFile>,
    servers: &ServersByName,
    lock: Option<&ToolLock>,
    context: &mut ToolContext<'_>,
) -> Option<McpBacking> {
    let mcp = &file.value;
    let Some(server_name) = mcp.server.spanned() else {
        context.diagnostics.error(
            file.key_span,
            "`mcp` has no `server`",
            "name a key of `servers`: `mcp: {server: NAME}`",
        );
        return None;
    };
    let server = servers.get(&server_name.value);
    if server.is_none() {
        let known: Vec<&str> = servers.keys().map(String::as_str).collect();
        let hint = if known.is_empty() {
            "declare it under `servers`, next to `tools`: `servers: {NAME: {command: [PROGRAM]}}`"
                .to_owned()
        } else {
            format!("the usable servers are: {}", known.join(", "))
        };
        context.diagnostics.error(
            server_name.span,
            format!("there is no server `{}`", server_name.value),
            hint,
        );
    }
    let arguments = mcp.arguments.spanned();
    if let Some(arguments) = arguments
        && !matches!(arguments.value, BodyFile::Table(_))
    {
        context.diagnostics.error(
            arguments.span,
            "`arguments` must be a table",
            "write the name of each argument with its value: `{path: \"{path}\"}`",
        );
    }
    let server = server?;
    Some(McpBacking {
        server: Arc::clone(server),
        tool: mcp.tool.value().map_or(name, String::as_str).into(),
        arguments: arguments.map(|arguments| resolve_body_template(arguments, context)),
        result: mcp.result.value().copied().unwrap_or(server.result),
        lock: lock.cloned().map(Arc::new),
    })
}

/// The servers of a file by name.
pub(crate) type ServersByName = BTreeMap<String, Arc<ServerConfig>>;
