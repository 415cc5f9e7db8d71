//! `http` and `mcp`: requests to a URL, or to a tool of a server. No value from the input can change the server of a request,
//! unless `hosts` allows it.

use std::collections::BTreeMap;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Number, Value};

use crate::template::parse_template;
use crate::tools_file::context::ToolContext;
use crate::tools_file::spanned::{Field, Spanned, SpannedTable};
use crate::tools_file::tables::request::{
    header_policy, resolve_allowed_hosts, resolve_headers, resolve_url,
};
use crate::tools_file::tables::values::StatusRangeText;
use crate::tools_file::templates::TemplatePolicy;
use crate::types::{
    BodyTemplate, FORM_MEDIA_TYPE, HttpBacking, HttpMethod, McpBacking, RequestBody, ResultParts,
    ServerConfig, Span, StatusRange, Template, ToolLock,
};

/// An HTTP request and how to read its response.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(deny_unknown_fields, extend("required" = ["url"]))]
pub struct HttpFile {
    /// HTTP method. Default: GET.
    pub method: Field<HttpMethod>,
    /// URL template. Values from the input may only appear after the host and are percent-encoded. Or a single value
    /// that is the whole URL, which requires `hosts`.
    pub url: Field<String>,
    /// Hosts that a URL from the input may name: `api.example.com`, or `*.example.com` for its subdomains. An empty
    /// list allows no host. Addresses that aren't public are always refused.
    pub hosts: Field<Vec<Field<String>>>,
    /// Query parameters: names with templates for their values.
    pub query: Field<SpannedTable<String>>,
    /// Headers: names with templates for their values.
    pub headers: Field<SpannedTable<String>>,
    /// Request body: `input` (the default for methods with a body), `none`, or JSON with templates. A text is sent as it is
    /// where `content-type` isn't JSON.
    #[schemars(with = "Field<Value>")]
    pub body: Field<BodyFile>,
    /// Request body as a form: names with templates for their values.
    pub form: Field<SpannedTable<String>>,
    /// Statuses that count as success. Default: 200-299.
    pub success_status: Field<Vec<Field<StatusRangeText>>>,
    /// JSON pointer into the response. Only that part becomes the result.
    pub select: Field<String>,
    /// Maximum number of redirects to follow, all to the same origin. Default: 0.
    #[schemars(range(max = 10))]
    pub redirects: Field<u32>,
    /// URL of a proxy. Proxy variables in the environment are ignored.
    pub proxy: Field<String>,
}

/// JSON whose strings are templates.
#[derive(Debug, Deserialize)]
#[serde(rename = "$kind", rename_all = "snake_case", expecting = "JSON")]
pub enum BodyFile {
    Null(()),
    Boolean(bool),
    Number(Number),
    Text(String),
    List(Vec<Field<BodyFile>>),
    Table(SpannedTable<BodyFile>),
}

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

const PROXY_POLICY: TemplatePolicy = TemplatePolicy::WITH_VARIABLES.without_values(
    "an input value can't choose the proxy",
    "write it out, or take it from a variable: `${HTTPS_PROXY}`",
);

/// More redirects than this are most likely a loop.
const MAX_REDIRECTS: u32 = 10;

/// Returns the backing, or `None` if there is no URL.
pub(crate) fn resolve_http(
    file: &Spanned<HttpFile>,
    context: &mut ToolContext<'_>,
) -> Option<HttpBacking> {
    let http = &file.value;
    if http.url.is_missing() {
        context.diagnostics.error(
            (file.key_span, "no address"),
            "`http` has no `url`",
            "add `url: \"https://…\"`",
        );
    }
    let method = http.method.copied().unwrap_or(HttpMethod::Get);
    let hosts = resolve_allowed_hosts(&http.hosts, &http.proxy, context);
    let url = http
        .url
        .spanned()
        .map(|url| resolve_url(url, !http.hosts.is_missing(), context));
    let query = resolve_pairs(&http.query, context);
    let mut headers = resolve_headers(&http.headers, context, header_policy);
    let body = match resolve_form(http, context) {
        Some(form) => {
            if !headers.iter().any(|(name, _)| name == "content-type") {
                let form_type = parse_template(FORM_MEDIA_TYPE);
                headers.push(("content-type".to_owned(), form_type));
            }
            form
        }
        None => resolve_body(&http.body, method, context),
    };
    let proxy = http
        .proxy
        .spanned()
        .map(|proxy| context.resolve_template(proxy, PROXY_POLICY));
    if let Some(pointer) = http.select.spanned() {
        check_json_pointer(pointer, context);
    }
    Some(HttpBacking {
        method,
        url: url?,
        allowed_hosts: hosts,
        query,
        headers,
        body,
        success_status: resolve_success_status(&http.success_status),
        select: http.select.value().cloned(),
        max_redirects: resolve_redirects(&http.redirects, context),
        proxy,
    })
}

/// Resolves pairs of a constant name and a template.
fn resolve_pairs(
    table: &Field<SpannedTable<String>>,
    context: &mut ToolContext<'_>,
) -> Vec<(String, Template)> {
    let mut pairs = Vec::new();
    for (name, value) in table.entries() {
        check_constant_name(name, value.key_span, context);
        pairs.push((
            name.to_owned(),
            context.resolve_template(value, TemplatePolicy::WITH_VARIABLES),
        ));
    }
    pairs
}

/// Reports a name that looks like a template.
fn check_constant_name(name: &str, span: Span, context: &mut ToolContext<'_>) {
    if parse_template(name).sole_text().is_none() && !name.is_empty() {
        context.diagnostics.error(
            (span, "must be constant"),
            format!("the name `{name}` can't be a template"),
            "only values can be templates",
        );
    }
}

/// Returns the body that `form` describes.
fn resolve_form(http: &HttpFile, context: &mut ToolContext<'_>) -> Option<RequestBody> {
    let form = http.form.spanned()?;
    if !http.body.is_missing() {
        context.diagnostics.error(
            (form.key_span, "`body` is there, too"),
            "a request has one body",
            "keep one of them",
        );
    }
    let fields = resolve_pairs(&http.form, context)
        .into_iter()
        .map(|(name, value)| (name, BodyTemplate::Template(value)))
        .collect();
    Some(RequestBody::Json(BodyTemplate::Object(fields)))
}

fn resolve_body(
    field: &Field<BodyFile>,
    method: HttpMethod,
    context: &mut ToolContext<'_>,
) -> RequestBody {
    let Some(tree) = field.spanned() else {
        return if method.has_body() {
            RequestBody::Input
        } else {
            RequestBody::None
        };
    };
    match &tree.value {
        BodyFile::Text(word) if word == "input" => RequestBody::Input,
        BodyFile::Text(word) if word == "none" => RequestBody::None,
        _ => RequestBody::Json(resolve_body_template(tree, context)),
    }
}

/// Resolves JSON whose strings are templates.
fn resolve_body_template(node: &Spanned<BodyFile>, context: &mut ToolContext<'_>) -> BodyTemplate {
    match &node.value {
        BodyFile::Null(()) => BodyTemplate::Literal(Value::Null),
        BodyFile::Boolean(value) => BodyTemplate::Literal((*value).into()),
        BodyFile::Number(number) => BodyTemplate::Literal(number.clone().into()),
        BodyFile::Text(text) => {
            let spanned = Spanned {
                key_span: node.key_span,
                span: node.span,
                value: text,
            };
            BodyTemplate::Template(
                context.resolve_template(&spanned, TemplatePolicy::WITH_VARIABLES),
            )
        }
        BodyFile::List(items) => {
            let items = items.iter().filter_map(Field::spanned);
            BodyTemplate::Array(
                items
                    .map(|item| resolve_body_template(item, context))
                    .collect(),
            )
        }
        BodyFile::Table(table) => {
            let mut object = Vec::new();
            for (name, value) in table.entries() {
                check_constant_name(name, value.key_span, context);
                object.push((name.to_owned(), resolve_body_template(value, context)));
            }
            BodyTemplate::Object(object)
        }
    }
}

fn resolve_success_status(field: &Field<Vec<Field<StatusRangeText>>>) -> Vec<StatusRange> {
    if field.is_missing() {
        return vec![200..=299];
    }
    field.items().map(|range| range.value.0.clone()).collect()
}

fn resolve_redirects(field: &Field<u32>, context: &mut ToolContext<'_>) -> u32 {
    if let Some(redirects) = field.outside(..=MAX_REDIRECTS) {
        context.diagnostics.error(
            (redirects.span, "at most 10"),
            format!("{} redirects are too many", redirects.value),
            "3 are usually enough",
        );
    }
    field.copied().unwrap_or_default()
}

/// Reports an invalid JSON pointer (RFC 6901, section 3).
fn check_json_pointer(pointer: &Spanned<String>, context: &mut ToolContext<'_>) {
    let text = &pointer.value;
    let has_valid_escapes = text
        .split('~')
        .skip(1)
        .all(|rest| rest.starts_with(['0', '1']));
    if !(text.is_empty() || text.starts_with('/')) || !has_valid_escapes {
        context.diagnostics.error(
            pointer.span,
            format!("`{text}` isn't a JSON pointer"),
            "put `/` before each name: `/rate`, `/items/0`; in a name, write `~1` for `/` and `~0` for `~`",
        );
    }
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
        result: mcp.result.copied().unwrap_or(server.result),
        lock: lock.cloned().map(Arc::new),
    })
}

/// The servers of a file by name.
pub(crate) type ServersByName = BTreeMap<String, Arc<ServerConfig>>;
