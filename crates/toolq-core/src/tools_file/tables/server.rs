//! `servers`, and the tools that they serve.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::tools_file::context::{Diagnostics, ToolContext};
use crate::tools_file::spanned::{Field, Spanned, SpannedTable};
use crate::tools_file::tables::calls::{check_max_parallel, resolve_start_limits};
use crate::tools_file::tables::command::{CommandForm, resolve_command};
use crate::tools_file::tables::request::{resolve_fixed_url, resolve_headers};
use crate::tools_file::tables::sandbox::SandboxForm;
use crate::tools_file::tables::tool::Defaults;
use crate::tools_file::tables::values::{Argv, DurationText, IdleText, RateText};
use crate::tools_file::templates::TemplatePolicy;
use crate::types::{
    CommandBacking, HintPolicy, Leftovers, ResultParts, ServerConfig, ServerEndpoint, ServerLock,
    ServerProtocol, ServerTransport, Span, StdinSource,
};

/// A program that serves tools by the Model Context Protocol (MCP).
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(deny_unknown_fields, extend("oneOf" = [{"required": ["command"]}, {"required": ["url"]}]))]
pub struct ServerFile {
    /// Program to run: a list of the program and its arguments, or a table. It starts at the first call of one of its tools,
    /// serves all of them, and ends with the run.
    pub command: Field<CommandForm>,
    /// What the program, and all that it starts, can reach. Default: what the user who runs toolq can.
    pub sandbox: Field<SandboxForm>,
    /// What runs the program: a program and its arguments before that. An empty list turns that of `defaults` off.
    pub wrapper: Field<Argv>,
    /// Address of a server that is running already, for streamable HTTP: `https://host/mcp`. A template without values
    /// from the input.
    pub url: Field<String>,
    /// Headers of every request to `url`: names with templates for their values.
    pub headers: Field<SpannedTable<String>>,
    /// How long the server may take until it is ready for calls. Default: 30s.
    pub startup: Field<DurationText>,
    /// For how long the server may be without a call before its program, or its session, is ended. The next call begins
    /// another. Default: `never`.
    pub idle: Field<IdleText>,
    /// How often the program is started again within 10 minutes after it has ended by itself. Default: 3.
    pub restarts: Field<u32>,
    /// Revision of the protocol to speak. Default: `auto`.
    pub protocol: Field<ServerProtocol>,
    /// What comes before the server's own names of the tools. Default: the server's name and `_`.
    pub prefix: Field<String>,
    /// Globs for the server's own names of the tools that may be called: `*`, `?`, `[a-z]`, `{get,list}_*`.
    /// Default: all.
    pub tools: Field<Vec<Field<String>>>,
    /// Whether what the server says about the effects of its tools counts. Default: `locked`.
    pub hints: Field<HintPolicy>,
    /// Which parts of its results the model reads. Default: `content`.
    pub result: Field<ResultParts>,
    /// Maximum number of calls of all its tools that run at once.
    #[schemars(range(min = 1))]
    pub max_parallel: Field<u32>,
    /// How often calls of its tools start: `10/s`, `600/m` or `100/h`.
    pub rate: Field<RateText>,
    /// Defaults for its tools, before those of the file.
    pub defaults: Field<Defaults>,
}

/// How long a server may take to be ready if the file doesn't say. `npx` may have to download it first.
const DEFAULT_STARTUP: Duration = Duration::from_secs(30);

/// How often a server is started again if the file doesn't say.
const DEFAULT_RESTARTS: u32 = 3;

/// Checks the name, and the defaults of the server's tools.
pub(crate) fn check_tool_settings(
    name: &str,
    server: &Spanned<ServerFile>,
    diagnostics: &mut Diagnostics,
) {
    if name == "lock" {
        diagnostics.error(
            server.key_span,
            "no server can be called `lock`",
            "choose another name: `toolq servers lock` is a command",
        );
    }
    let Some(defaults) = server.value.defaults.value() else {
        return;
    };
    let of_command =
        "`command` has what is about its program; everything that it started ends with it";
    let of_server = "write it beside `command`: it is about the program of the server";
    let keys = [
        (
            "leftovers",
            defaults.settings.leftovers.key_span(),
            of_command,
        ),
        ("limits", defaults.settings.limits.key_span(), of_command),
        ("env", defaults.env.key_span(), of_command),
        ("pass_env", defaults.pass_env.key_span(), of_command),
        ("cwd", defaults.cwd.key_span(), of_command),
        (
            "sandbox",
            defaults.settings.tool.sandbox.key_span(),
            of_server,
        ),
        ("wrapper", defaults.wrapper.key_span(), of_server),
    ];
    refuse_keys(keys, "for the tools of a server", diagnostics);
}

pub(crate) fn resolve_server(
    name: &str,
    lock: Option<&ServerLock>,
    file: &Spanned<ServerFile>,
    defaults: &Defaults,
    context: &mut ToolContext<'_>,
) -> Option<ServerConfig> {
    let server = &file.value;
    check_max_parallel(&server.max_parallel, context.diagnostics);
    let transport = resolve_transport(name, file, defaults, context)?;
    Some(ServerConfig {
        name: name.to_owned(),
        transport,
        startup: server
            .startup
            .value()
            .map_or(DEFAULT_STARTUP, |startup| startup.0),
        idle: server.idle.value().and_then(|idle| idle.0),
        restarts: server.restarts.copied().unwrap_or(DEFAULT_RESTARTS),
        protocol: server.protocol.copied().unwrap_or_default(),
        result: server.result.copied().unwrap_or_default(),
        start_limits: resolve_start_limits(&server.max_parallel, &server.rate),
        was_legacy: lock.is_some_and(|lock| ServerProtocol::is_legacy(&lock.protocol)),
        compares_tools: lock.is_some(),
        lock_digest: lock.map(ServerLock::digest),
    })
}

// Resolves how a server is reached: by a program to start, or by a URL.

/// Resolves `command`, or `url` with `headers`. Returns `None` if the server can't be reached.
fn resolve_transport(
    name: &str,
    file: &Spanned<ServerFile>,
    defaults: &Defaults,
    context: &mut ToolContext<'_>,
) -> Option<ServerTransport> {
    let server = &file.value;
    match (server.command.spanned(), server.url.spanned()) {
        // One of them is there, and invalid, which was reported.
        (None, None) if !server.command.is_missing() || !server.url.is_missing() => None,
        (None, None) => {
            context.diagnostics.error(
                (file.key_span, "no program and no address"),
                format!("the server `{name}` has neither `command` nor `url`"),
                "add the program that serves its tools, `command: [npx, -y, \"PACKAGE@VERSION\"]`, or its address, `url: \"https://host/mcp\"`",
            );
            None
        }
        (Some(_), Some(url)) => {
            context.diagnostics.error(
                url.key_span,
                format!("the server `{name}` has both `command` and `url`"),
                "keep `command` for a program that toolq starts, or `url` for a server that is running already",
            );
            None
        }
        (Some(form), None) => {
            let from_environment = "a program gets its secrets from its environment: `command: {argv: […], env: {TOKEN: \"${TOKEN}\"}}`";
            let keys = [("headers", server.headers.key_span(), from_environment)];
            refuse_keys(keys, "for a server with a `command`", context.diagnostics);
            let program = resolve_program(form, defaults, context)?;
            Some(ServerTransport::Program(Box::new(program)))
        }
        (None, Some(url)) => {
            let cannot_confine =
                "remove it: toolq doesn't start such a server, so it can't confine it";
            let starts_nothing = "remove it: toolq starts no program for it";
            let connects_again = "remove it: toolq doesn't start such a server, and connects to it again whenever it has to";
            let keys = [
                ("sandbox", server.sandbox.key_span(), cannot_confine),
                ("wrapper", server.wrapper.key_span(), starts_nothing),
                ("restarts", server.restarts.key_span(), connects_again),
            ];
            refuse_keys(keys, "for a server with a `url`", context.diagnostics);
            Some(ServerTransport::Endpoint(resolve_endpoint(
                url, server, context,
            )))
        }
    }
}

fn resolve_program(
    form: &Spanned<CommandForm>,
    defaults: &Defaults,
    context: &mut ToolContext<'_>,
) -> Option<CommandBacking> {
    report_call_keys(&form.value, context);
    let mut program = resolve_command(form, (&Field::Missing, &defaults.settings.limits), context)?;
    program.stdin = StdinSource::None;
    program.leftovers = Leftovers::Kill;
    Some(program)
}

fn resolve_endpoint(
    url: &Spanned<String>,
    server: &ServerFile,
    context: &mut ToolContext<'_>,
) -> ServerEndpoint {
    let url = resolve_fixed_url(url, TemplatePolicy::WITH_VARIABLES, context);
    for (name, header) in server.headers.entries() {
        if ServerEndpoint::defines_header(name) {
            context.diagnostics.error(
                header.key_span,
                format!("`{name}` is set by toolq itself"),
                "leave it out: the protocol defines its value",
            );
        }
    }
    ServerEndpoint {
        url,
        headers: resolve_headers(&server.headers, context, |_| TemplatePolicy::WITH_VARIABLES),
    }
}

/// Reports the keys of a command that are about one call. A server serves many, and nothing of it is left running.
fn report_call_keys(form: &CommandForm, context: &mut ToolContext<'_>) {
    let CommandForm::Table(file) = form else {
        return;
    };
    let hint = "remove it: a server talks over its stdin and stdout, and everything that it started ends with it";
    let keys = [
        ("stdin", file.stdin.key_span(), hint),
        ("dashes", file.dashes.key_span(), hint),
        ("success_exit", file.success_exit.key_span(), hint),
        ("stderr", file.stderr.key_span(), hint),
        ("leftovers", file.leftovers.key_span(), hint),
    ];
    refuse_keys(keys, "for a server", context.diagnostics);
}

/// Reports those keys that are there, each with a hint.
fn refuse_keys<const N: usize>(
    keys: [(&str, Option<Span>, &str); N],
    of_what: &str,
    diagnostics: &mut Diagnostics,
) {
    for (key, span, hint) in keys {
        if let Some(span) = span {
            diagnostics.error(span, format!("`{key}` has no meaning {of_what}"), hint);
        }
    }
}
