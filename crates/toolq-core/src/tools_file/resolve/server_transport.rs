//! Resolves how a server is reached: by a program to start, or by a URL.

use crate::tools_file::keys::{CommandForm, Defaults, ServerFile};
use crate::tools_file::resolve::command::resolve_command;
use crate::tools_file::resolve::context::ToolContext;
use crate::tools_file::resolve::headers::resolve_headers;
use crate::tools_file::resolve::placeholders::TemplatePolicy;
use crate::tools_file::resolve::url_template::resolve_fixed_url;
use crate::tools_file::spanned::{Field, Spanned};
use crate::types::{CommandBacking, Leftovers, ServerEndpoint, ServerTransport, StdinSource};

/// Resolves `command`, or `url` with `headers`. Returns `None` if the server can't be reached.
pub(crate) fn resolve_transport(
    name: &str,
    file: &Spanned<ServerFile>,
    defaults: &Defaults,
    context: &mut ToolContext<'_, '_>,
) -> Option<ServerTransport> {
    let server = &file.value;
    match (server.command.spanned(), server.url.spanned()) {
        (None, None) => {
            context.diagnostics.error(
                file.key_span,
                format!("the server `{name}` has neither `command` nor `url`"),
                "no program and no address",
                "add the program that serves its tools, `command: [npx, -y, \"PACKAGE@VERSION\"]`, or its address, `url: \"https://host/mcp\"`",
            );
            None
        }
        (Some(_), Some(url)) => {
            context.diagnostics.error(
                url.key_span,
                format!("the server `{name}` has both `command` and `url`"),
                "",
                "keep `command` for a program that toolq starts, or `url` for a server that is running already",
            );
            None
        }
        (Some(form), None) => {
            report_key_without_url(&server.headers, context);
            let program = resolve_program(form, defaults, context)?;
            Some(ServerTransport::Program(Box::new(program)))
        }
        (None, Some(url)) => {
            if let Some(sandbox) = server.sandbox.spanned() {
                context.diagnostics.error(
                    sandbox.key_span,
                    "`sandbox` has no meaning for a server with a `url`",
                    "",
                    "remove it: toolq doesn't start such a server, so it can't confine it",
                );
            }
            if let Some(wrapper) = server.wrapper.spanned() {
                context.diagnostics.error(
                    wrapper.key_span,
                    "`wrapper` has no meaning for a server with a `url`",
                    "",
                    "remove it: toolq starts no program for it",
                );
            }
            let restarts = server.restarts.spanned();
            if let Some(restarts) = restarts {
                context.diagnostics.error(
                    restarts.key_span,
                    "`restarts` has no meaning for a server with a `url`",
                    "",
                    "remove it: toolq doesn't start such a server, and connects to it again whenever it has to",
                );
            }
            Some(ServerTransport::Endpoint(resolve_endpoint(
                url, server, context,
            )))
        }
    }
}

fn resolve_program(
    form: &Spanned<CommandForm>,
    defaults: &Defaults,
    context: &mut ToolContext<'_, '_>,
) -> Option<CommandBacking> {
    report_call_keys(&form.value, context);
    let mut program = resolve_command(form, defaults, context)?;
    program.stdin = StdinSource::None;
    program.leftovers = Leftovers::Kill;
    Some(program)
}

fn resolve_endpoint(
    url: &Spanned<String>,
    server: &ServerFile,
    context: &mut ToolContext<'_, '_>,
) -> ServerEndpoint {
    let url = resolve_fixed_url(url, TemplatePolicy::WITH_VARIABLES, context);
    for (name, header) in server.headers.entries() {
        if ServerEndpoint::defines_header(name) {
            context.diagnostics.error(
                header.key_span,
                format!("`{name}` is set by toolq itself"),
                "",
                "leave it out: the protocol defines its value",
            );
        }
    }
    ServerEndpoint {
        url,
        headers: resolve_headers(&server.headers, context, |_| TemplatePolicy::WITH_VARIABLES),
    }
}

fn report_key_without_url<T>(headers: &Field<T>, context: &mut ToolContext<'_, '_>) {
    if let Some(headers) = headers.spanned() {
        context.diagnostics.error(
            headers.key_span,
            "`headers` has no meaning for a server with a `command`",
            "",
            "a program gets its secrets from its environment: `command: {argv: […], env: {TOKEN: \"${TOKEN}\"}}`",
        );
    }
}

/// Reports the keys of a command that are about one call. A server serves many, and nothing of it is left running.
fn report_call_keys(form: &CommandForm, context: &mut ToolContext<'_, '_>) {
    let CommandForm::Table(file) = form else {
        return;
    };
    let keys = [
        ("stdin", file.stdin.spanned().map(|field| field.key_span)),
        ("dashes", file.dashes.spanned().map(|field| field.key_span)),
        (
            "success_exit",
            file.success_exit.spanned().map(|field| field.key_span),
        ),
        (
            "leftovers",
            file.leftovers.spanned().map(|field| field.key_span),
        ),
    ];
    for (key, span) in keys {
        if let Some(span) = span {
            context.diagnostics.error(
                span,
                format!("`{key}` has no meaning for a server"),
                "",
                "remove it: a server talks over its stdin and stdout, and everything that it started ends with it",
            );
        }
    }
}
