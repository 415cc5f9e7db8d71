//! The URL of a request as written → a template whose server is the author's alone, or one of the hosts that the
//! author lists.

use crate::tools_file::keys::HttpFile;
use crate::tools_file::resolve::context::Scope;
use crate::tools_file::resolve::placeholders::Sink;
use crate::tools_file::spanned::Placed;
use crate::types::{HostPattern, Part, Template};
use crate::url::pattern;

/// The hosts that a URL of the input may name; none where the server is the author's.
pub(crate) fn hosts(http: &HttpFile, scope: &mut Scope<'_, '_>) -> Option<Vec<HostPattern>> {
    let list = http.hosts.given()?;
    if let Some(proxy) = http.proxy.given() {
        scope.findings.error(
            proxy.span,
            "a proxy looks up hosts where toolq can't see their addresses",
            "not beside `hosts`",
            "leave `proxy` out, or write the server into `url`",
        );
    }
    if list.value.is_empty() {
        scope.findings.warning(
            list.span,
            "no host is listed, so every call is refused",
            "",
            "list hosts: `[api.example.com, \"*.example.org\"]`",
        );
    }
    let mut patterns = Vec::new();
    for entry in http.hosts.items() {
        match pattern(&entry.value) {
            Ok(pattern) => patterns.push(pattern),
            Err((message, hint)) => scope.findings.error(entry.span, message, "", hint),
        }
    }
    Some(patterns)
}

/// A URL whose scheme, user, host and port hold no value of the input, or, where there are hosts, one that is a value
/// and nothing else.
pub(crate) fn address(
    url: &Placed<String>,
    has_hosts: bool,
    scope: &mut Scope<'_, '_>,
) -> Template {
    let template = scope.template(url, Sink::WITH_VARIABLES);
    if has_hosts {
        if template.sole_value().is_none() {
            scope.findings.error(
                url.span,
                "`hosts` are for a URL that is one value of the input",
                "has a server or text of its own",
                "write `url: \"{url}\"`, or leave `hosts` out: a server that is written here is the only one",
            );
        }
        return template;
    }
    scope.optional_in_url(url, &template);
    match check_beginning(&template) {
        Ok(()) => {}
        Err(Fault::Malformed(why)) => scope.findings.error(
            url.span,
            why,
            "no address",
            "a URL is `https://host/path`; a variable may stand for its beginning",
        ),
        Err(Fault::Value(name)) => {
            let words = format!("{{{name}");
            let start = url.value.find(&words).unwrap_or_default();
            let span = scope
                .findings
                .within(url, &(start..start + words.len() + 1));
            scope.findings.error(
                span,
                "a value of the input cannot stand in a URL's scheme, user, host or port",
                "before the path",
                if template.sole_value().is_some() {
                    "a tool that takes a whole URL needs `hosts: [api.example.com, \"*.example.org\"]`"
                } else {
                    "write the server out up to its `/`; values stand behind it"
                },
            );
        }
    }
    template
}

/// A server that is the author's alone, without a value of the input anywhere.
pub(crate) fn fixed(url: &Placed<String>, sink: Sink, scope: &mut Scope<'_, '_>) -> Template {
    let template = scope.template(url, sink);
    if let Err(Fault::Malformed(why)) = check_beginning(&template) {
        scope.findings.error(
            url.span,
            why,
            "no address",
            "an endpoint is `https://host`; a variable may stand for its beginning",
        );
    }
    template
}

/// Why the beginning of a URL names no server of the author's.
enum Fault {
    /// The value of this name stands in it.
    Value(String),
    /// It is no web server.
    Malformed(String),
}

/// What stands before the path. A variable may hold a whole server, so that only a path may follow it.
fn check_beginning(template: &Template) -> Result<(), Fault> {
    let mut written = String::new();
    for part in &template.parts {
        match part {
            Part::Text(text) => written.push_str(text),
            Part::Env { .. } if written.is_empty() => written.push_str("http://variable"),
            Part::Env { .. } => written.push('0'),
            Part::Value { .. } if has_path(&written) => break,
            Part::Value { path, .. } => return Err(Fault::Value(path.join("."))),
        }
    }
    check_server(&written).map_err(Fault::Malformed)
}

/// Whether what is written goes beyond the server.
fn has_path(written: &str) -> bool {
    server(written).is_some_and(|(server, rest)| !server.is_empty() && !rest.is_empty())
}

/// User, host and port, and what is behind them. URL parsers forgive `http:/host` and `http:///host`, so that what
/// looks like a path there is the host; this does not.
fn server(written: &str) -> Option<(&str, &str)> {
    let (_, rest) = written.split_once("://")?;
    let end = rest.find(['/', '?', '#', '\\']);
    Some(rest.split_at(end.unwrap_or(rest.len())))
}

fn check_server(written: &str) -> Result<(), String> {
    let has_server = server(written).is_some_and(|(server, _)| !server.is_empty());
    match url::Url::parse(written) {
        Ok(url) if !matches!(url.scheme(), "http" | "https") => {
            Err(format!("`{}` is neither http nor https", url.scheme()))
        }
        Ok(url) if url.has_host() && has_server => Ok(()),
        Ok(_) => Err("the URL has no host".to_owned()),
        Err(error) => Err(format!("this is no URL: {error}")),
    }
}
