//! `http` as written → a request whose server no value of the input can change.

use crate::template::parse_template;
use crate::tools_file::keys::{BodyFile, HttpFile, Statuses};
use crate::tools_file::resolve::context::Scope;
use crate::tools_file::resolve::placeholders::Sink;
use crate::tools_file::resolve::url::{address, hosts};
use crate::tools_file::spanned::{Placed, Setting, Table};
use crate::types::{Body, BodyTemplate, HttpBacking, HttpMethod, Span, StatusRange, Template};

const PROXY: Sink = Sink::WITH_VARIABLES.refusing(
    "a value of the input cannot choose the proxy",
    "write it out, or take it from a variable: `${HTTPS_PROXY}`",
);
const FIXED_HEADER: Sink = Sink::WITH_VARIABLES.refusing(
    "a value of the input cannot be this header",
    "write it out, or take it from a variable of the environment: `${NAME}`",
);

/// Headers that frame a message (RFC 9112): the client writes them.
const FRAMING: [&str; 8] = [
    "connection",
    "content-length",
    "expect",
    "keep-alive",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];
/// Headers that say who asks, or whom.
const IDENTITY: [&str; 4] = ["authorization", "cookie", "host", "proxy-authorization"];
/// Redirects beyond this are a loop.
const MAX_REDIRECTS: u32 = 10;

/// The backing; none where there is no URL.
pub(crate) fn resolved(file: &Placed<HttpFile>, scope: &mut Scope<'_, '_>) -> Option<HttpBacking> {
    let http = &file.value;
    if http.url.is_missing() {
        scope.findings.error(
            file.key,
            "`http` has no `url`",
            "no address",
            "add `url: \"https://…\"`",
        );
    }
    let method = http.method.value().copied().unwrap_or(HttpMethod::Get);
    let hosts = hosts(http, scope);
    let url = http
        .url
        .given()
        .map(|url| address(url, !http.hosts.is_missing(), scope));
    let query = pairs(&http.query, scope, |_| Sink::WITH_VARIABLES);
    let headers = headers(&http.headers, scope);
    let body = body(&http.body, method, scope);
    let proxy = http.proxy.given().map(|proxy| scope.template(proxy, PROXY));
    if let Some(pointer) = http.select.given() {
        check_pointer(pointer, scope);
    }
    Some(HttpBacking {
        method,
        url: url?,
        hosts,
        query,
        headers,
        body,
        success_status: statuses(&http.success_status),
        select: http.select.value().cloned(),
        redirects: redirects(&http.redirects, scope),
        proxy,
    })
}

/// Pairs whose names are constant.
fn pairs(
    table: &Setting<Table<String>>,
    scope: &mut Scope<'_, '_>,
    sink: impl Fn(&str) -> Sink,
) -> Vec<(String, Template)> {
    let mut pairs = Vec::new();
    for (name, value) in table.entries() {
        constant(name, value.key, scope);
        pairs.push((name.to_owned(), scope.template(value, sink(name))));
    }
    pairs
}

/// Reports a name that was meant to be a template.
fn constant(name: &str, span: Span, scope: &mut Scope<'_, '_>) {
    if parse_template(name).sole_text().is_none() && !name.is_empty() {
        scope.findings.error(
            span,
            format!("the name `{name}` is no template"),
            "constant",
            "only values are templates",
        );
    }
}

/// Pairs with names in lower case.
fn headers(table: &Setting<Table<String>>, scope: &mut Scope<'_, '_>) -> Vec<(String, Template)> {
    let mut headers: Vec<(String, Template)> = Vec::new();
    for (name, value) in table.entries() {
        let lower = name.to_ascii_lowercase();
        let mut refuse =
            |span, message: String, hint| scope.findings.error(span, message, "", hint);
        if !is_token(name) {
            let message = format!("`{name}` is no name of a header");
            refuse(
                value.key,
                message,
                "names are constant and have letters, digits and `-`",
            );
        } else if FRAMING.contains(&&*lower) {
            refuse(
                value.key,
                format!("`{name}` is written by toolq itself"),
                "leave it out",
            );
        } else if headers.iter().any(|(other, _)| *other == lower) {
            let message = format!("`{name}` stands twice");
            refuse(value.key, message, "header names differ by more than case");
        }
        if value.value.contains(['\r', '\n', '\0']) {
            let message = "a header has one line".to_owned();
            refuse(value.span, message, "write its value in one line");
        }
        let template = scope.template(value, header_sink(&lower));
        headers.push((lower, template));
    }
    headers
}

fn header_sink(name: &str) -> Sink {
    if IDENTITY.contains(&name) || FRAMING.contains(&name) {
        FIXED_HEADER
    } else {
        Sink::WITH_VARIABLES
    }
}

/// `token` of RFC 9110, section 5.6.2.
fn is_token(name: &str) -> bool {
    !name.is_empty()
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
}

fn body(setting: &Setting<BodyFile>, method: HttpMethod, scope: &mut Scope<'_, '_>) -> Body {
    let Some(tree) = setting.given() else {
        return if method.has_body() {
            Body::Input
        } else {
            Body::None
        };
    };
    match &tree.value {
        BodyFile::Text(word) if word == "input" => Body::Input,
        BodyFile::Text(word) if word == "none" => Body::None,
        _ => Body::Json(body_template(tree, scope)),
    }
}

fn body_template(node: &Placed<BodyFile>, scope: &mut Scope<'_, '_>) -> BodyTemplate {
    match &node.value {
        BodyFile::Null(()) => BodyTemplate::Literal(serde_json::Value::Null),
        BodyFile::Boolean(value) => BodyTemplate::Literal((*value).into()),
        BodyFile::Number(number) => BodyTemplate::Literal(number.clone().into()),
        BodyFile::Text(text) => {
            let placed = Placed {
                key: node.key,
                span: node.span,
                value: text,
            };
            BodyTemplate::Template(scope.template(&placed, Sink::WITH_VARIABLES))
        }
        BodyFile::List(items) => {
            let items = items.iter().filter_map(Setting::given);
            BodyTemplate::Array(items.map(|item| body_template(item, scope)).collect())
        }
        BodyFile::Table(table) => {
            let mut object = Vec::new();
            for (name, value) in table.entries() {
                constant(name, value.key, scope);
                object.push((name.to_owned(), body_template(value, scope)));
            }
            BodyTemplate::Object(object)
        }
    }
}

fn statuses(setting: &Setting<Vec<Setting<Statuses>>>) -> Vec<StatusRange> {
    if setting.is_missing() {
        return vec![200..=299];
    }
    setting.items().map(|range| range.value.0.clone()).collect()
}

fn redirects(setting: &Setting<u32>, scope: &mut Scope<'_, '_>) -> u32 {
    let Some(redirects) = setting.given() else {
        return 0;
    };
    if redirects.value > MAX_REDIRECTS {
        scope.findings.error(
            redirects.span,
            "so many redirects are a loop",
            "at most 10",
            "3 are plenty",
        );
    }
    redirects.value
}

/// RFC 6901, section 3.
fn check_pointer(pointer: &Placed<String>, scope: &mut Scope<'_, '_>) {
    let text = &pointer.value;
    let escapes = text
        .split('~')
        .skip(1)
        .all(|rest| rest.starts_with(['0', '1']));
    if !(text.is_empty() || text.starts_with('/')) || !escapes {
        scope.findings.error(
            pointer.span,
            format!("`{text}` is no JSON pointer"),
            "",
            "write `/` before each name: `/rate`, `/items/0`; `~1` is a `/` in a name and `~0` a `~`",
        );
    }
}
