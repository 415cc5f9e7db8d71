//! URLs and headers of requests, of tools, agents and servers: the author fixes the server, or limits it to a list of hosts.

use crate::tools_file::context::ToolContext;
use crate::tools_file::spanned::{Field, Spanned, SpannedTable};
use crate::tools_file::templates::TemplatePolicy;
use crate::types::{HostPattern, Template, TemplatePart};
use crate::url::parse_host_pattern;

/// Returns the hosts that a URL from the input may name, or `None` if the author fixes the server.
pub(crate) fn resolve_allowed_hosts(
    hosts: &Field<Vec<Field<String>>>,
    proxy: &Field<String>,
    context: &mut ToolContext<'_>,
) -> Option<Vec<HostPattern>> {
    let list = hosts.spanned()?;
    if let Some(proxy) = proxy.spanned() {
        context.diagnostics.error(
            (proxy.span, "not together with `hosts`"),
            "a proxy looks up hosts itself, so toolq can't check their addresses",
            "leave `proxy` out, or write the server in `url`",
        );
    }
    if list.value.is_empty() {
        context.diagnostics.warning(
            list.span,
            "no host is listed, so every call is refused",
            "list hosts: `[api.example.com, \"*.example.org\"]`",
        );
    }
    let mut patterns = Vec::new();
    for entry in hosts.items() {
        match parse_host_pattern(&entry.value) {
            Ok(pattern) => patterns.push(pattern),
            Err((message, hint)) => context.diagnostics.error(entry.span, message, hint),
        }
    }
    Some(patterns)
}

/// Resolves a URL. Without `hosts`, its scheme, user, host and port can't contain a value from the input. With `hosts`,
/// it must be such a value and nothing else.
pub(crate) fn resolve_url(
    url: &Spanned<String>,
    has_hosts: bool,
    context: &mut ToolContext<'_>,
) -> Template {
    let template = context.resolve_template(url, TemplatePolicy::WITH_VARIABLES);
    if has_hosts {
        if template.sole_value().is_none() {
            context.diagnostics.error(
                (url.span, "contains other text"),
                "`hosts` only applies to a URL that is a single input value",
                "write `url: \"{url}\"`, or leave `hosts` out: a server that is written here is the only one allowed",
            );
        }
        return template;
    }
    match check_url_prefix(&template) {
        Ok(()) => {}
        Err(ServerUrlError::Malformed(why)) => context.diagnostics.error(
            (url.span, "no address"),
            why,
            "write a URL as `https://host/path`; it may begin with a variable",
        ),
        Err(ServerUrlError::HasUser) => report_user(url, context),
        Err(ServerUrlError::ContainsValue(name)) => {
            let needle = format!("{{{name}");
            let start = url.value.find(&needle).unwrap_or_default();
            let span = context
                .diagnostics
                .span_within(url, &(start..start + needle.len() + 1));
            context.diagnostics.error(
                (span, "before the path"),
                "an input value can't be part of a URL's scheme, user, host or port",
                if template.sole_value().is_some() {
                    "a tool that takes a whole URL needs `hosts: [api.example.com, \"*.example.org\"]`"
                } else {
                    "write the server out up to its `/`, and put values after it"
                },
            );
        }
    }
    template
}

/// Resolves the URL of a server that the author fixes. It can't contain any value from the input.
pub(crate) fn resolve_fixed_url(
    url: &Spanned<String>,
    policy: TemplatePolicy,
    context: &mut ToolContext<'_>,
) -> Template {
    let template = context.resolve_template(url, policy);
    match check_url_prefix(&template) {
        Err(ServerUrlError::Malformed(why)) => context.diagnostics.error(
            (url.span, "no address"),
            why,
            "write an endpoint as `https://host`; it may begin with a variable",
        ),
        Err(ServerUrlError::HasUser) => report_user(url, context),
        Err(ServerUrlError::ContainsValue(_)) | Ok(()) => {}
    }
    template
}

/// Reports a user or password in a URL, which wouldn't be sent, and would be shown wherever the URL is.
fn report_user(url: &Spanned<String>, context: &mut ToolContext<'_>) {
    context.diagnostics.error(
        url.span,
        "a user and password can't be part of a URL",
        "put `user:password` in Base64 into a variable, and write `headers: {authorization: \"Basic ${CREDENTIALS}\"}`",
    );
}

/// Why the beginning of a URL doesn't name a server that the author fixes.
enum ServerUrlError {
    /// It contains the value of this name.
    ContainsValue(String),
    /// It isn't the URL of a web server, for this reason.
    Malformed(String),
    /// It has a user or a password.
    HasUser,
}

/// Checks the part of a URL before the path. A variable may hold a whole server, so only a path may follow it.
fn check_url_prefix(template: &Template) -> Result<(), ServerUrlError> {
    let mut prefix = String::new();
    for part in &template.parts {
        match part {
            TemplatePart::Text(text) => prefix.push_str(text),
            TemplatePart::Env { .. } if prefix.is_empty() => prefix.push_str("http://variable"),
            TemplatePart::Env { .. } => prefix.push('0'),
            TemplatePart::Value { .. } if has_path(&prefix) => break,
            TemplatePart::Value { path, .. } => {
                return Err(ServerUrlError::ContainsValue(path.join(".")));
            }
        }
    }
    check_server(&prefix)
}

/// Whether the URL continues after the server.
fn has_path(prefix: &str) -> bool {
    split_server(prefix).is_some_and(|(server, rest)| !server.is_empty() && !rest.is_empty())
}

/// Splits the user, host and port from what follows. URL parsers also accept `http:/host` and `http:///host`, where
/// what looks like the path is the host. This function doesn't.
fn split_server(prefix: &str) -> Option<(&str, &str)> {
    let (_, rest) = prefix.split_once("://")?;
    let end = rest.find(['/', '?', '#', '\\']);
    Some(rest.split_at(end.unwrap_or(rest.len())))
}

fn check_server(prefix: &str) -> Result<(), ServerUrlError> {
    let malformed = |why| Err(ServerUrlError::Malformed(why));
    let has_server = split_server(prefix).is_some_and(|(server, _)| !server.is_empty());
    match url::Url::parse(prefix) {
        Ok(url) if !matches!(url.scheme(), "http" | "https") => {
            malformed(format!("`{}` is neither http nor https", url.scheme()))
        }
        Ok(url) if !url.username().is_empty() || url.password().is_some() => {
            Err(ServerUrlError::HasUser)
        }
        Ok(url) if url.has_host() && has_server => Ok(()),
        Ok(_) => malformed("the URL has no host".to_owned()),
        Err(error) => malformed(format!("this isn't a URL: {error}")),
    }
}

const FIXED_HEADER_POLICY: TemplatePolicy = TemplatePolicy::WITH_VARIABLES.without_values(
    "an input value can't be used in this header",
    "write it out, or take it from an environment variable: `${NAME}`",
);

/// Headers that frame a message (RFC 9112). The HTTP client sets them.
const FRAMING_HEADERS: [&str; 8] = [
    "connection",
    "content-length",
    "expect",
    "keep-alive",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// Headers that identify the client or the server.
const IDENTITY_HEADERS: [&str; 4] = ["authorization", "cookie", "host", "proxy-authorization"];

/// The header by which a server recognizes a repeated request. If the input chose it, a repeated request could count as a
/// new one, or a new one as repeated.
const IDEMPOTENCY_HEADER: &str = "idempotency-key";

/// Resolves headers, and lowercases their names.
pub(crate) fn resolve_headers(
    table: &Field<SpannedTable<String>>,
    context: &mut ToolContext<'_>,
    policy_for: impl Fn(&str) -> TemplatePolicy,
) -> Vec<(String, Template)> {
    let mut headers: Vec<(String, Template)> = Vec::new();
    for (name, value) in table.entries() {
        let lower = name.to_ascii_lowercase();
        let mut refuse =
            |span, message: String, hint| context.diagnostics.error(span, message, hint);
        if !is_token(name) {
            let message = format!("`{name}` isn't a valid header name");
            refuse(
                value.key_span,
                message,
                "names are constant and consist of letters, digits and `-`",
            );
        } else if FRAMING_HEADERS.contains(&&*lower) {
            refuse(
                value.key_span,
                format!("`{name}` is set by toolq itself"),
                "leave it out",
            );
        } else if headers.iter().any(|(other, _)| *other == lower) {
            let message = format!("duplicate header `{name}`");
            refuse(value.key_span, message, "header names are case-insensitive");
        }
        if value.value.contains(['\r', '\n', '\0']) {
            let message = "a header must be a single line".to_owned();
            refuse(value.span, message, "write its value on one line");
        }
        let template = context.resolve_template(value, policy_for(&lower));
        headers.push((lower, template));
    }
    headers
}

/// Returns what the value of a header of a tool may contain; `name` is in lowercase.
pub(crate) fn header_policy(name: &str) -> TemplatePolicy {
    let is_fixed = IDENTITY_HEADERS.contains(&name)
        || FRAMING_HEADERS.contains(&name)
        || name == IDEMPOTENCY_HEADER;
    if is_fixed {
        FIXED_HEADER_POLICY
    } else {
        TemplatePolicy::WITH_VARIABLES
    }
}

/// Whether `name` is a `token` (RFC 9110, section 5.6.2).
fn is_token(name: &str) -> bool {
    !name.is_empty()
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
}
