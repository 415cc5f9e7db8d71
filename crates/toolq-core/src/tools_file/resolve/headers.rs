//! Resolves the headers of a request.

use crate::tools_file::resolve::context::ToolContext;
use crate::tools_file::resolve::placeholders::TemplatePolicy;
use crate::tools_file::spanned::{Field, SpannedTable};
use crate::types::Template;

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
    context: &mut ToolContext<'_, '_>,
    policy_for: impl Fn(&str) -> TemplatePolicy,
) -> Vec<(String, Template)> {
    let mut headers: Vec<(String, Template)> = Vec::new();
    for (name, value) in table.entries() {
        let lower = name.to_ascii_lowercase();
        let mut refuse =
            |span, message: String, hint| context.diagnostics.error(span, message, "", hint);
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
