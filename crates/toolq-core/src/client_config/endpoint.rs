//! A server that is reached over HTTP, without the secrets in its address and its headers.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::client_config::secrets::looks_secret;
use crate::client_config::templates::{escape_placeholders, resolve_references, value_template};
use crate::types::ServerEndpoint;

/// What may precede the secret in a header, in lowercase.
const SCHEMES: [&str; 4] = ["apikey", "basic", "bearer", "token"];

/// `url` and `headers` of a server.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct ConfiguredEndpoint {
    /// The address.
    pub url: String,
    /// Headers of every request.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
}

impl ConfiguredEndpoint {
    /// Turns values as the configuration has them into templates without secrets. Returns what a person has to know.
    pub(super) fn remove_secrets(&mut self, server: &str) -> Vec<String> {
        let mut notes = Vec::new();
        self.url = url_template(server, &self.url, &mut notes);
        self.headers.retain(|name, _| {
            let is_kept = !ServerEndpoint::defines_header(name);
            if !is_kept {
                notes.push(format!(
                    "the header {name:?} of the server {server:?} is left out: toolq sets it itself"
                ));
            }
            is_kept
        });
        for (name, value) in &mut self.headers {
            *value = header_template(server, name, value, &mut notes);
        }
        notes
    }
}

/// Returns the template for a header. The name of the scheme before a secret stays, so that only the secret is masked.
fn header_template(server: &str, name: &str, value: &str, notes: &mut Vec<String>) -> String {
    let is_scheme = |word: &str| SCHEMES.contains(&&*word.to_ascii_lowercase());
    let parts = value.split_once(' ');
    let (scheme, template) = match parts.filter(|(scheme, _)| is_scheme(scheme)) {
        // What follows a scheme is secret, whatever the header is.
        Some((scheme, rest)) => (format!("{scheme} "), value_template("secret", rest.trim())),
        None => (String::new(), value_template(name, value)),
    };
    let template = template.unwrap_or_else(|| {
        let variable = variable_name(server, name);
        let place = format!("the header {name:?} of the server {server:?}");
        notes.push(match scheme.trim_end() {
            "" => format!("{place} may be secret: set {variable} to its value in the environment"),
            scheme => format!(
                "{place} has a secret: set {variable} to what comes after {scheme:?} in the environment"
            ),
        });
        format!("${{{variable}}}")
    });
    scheme + &template
}

/// Returns the template for an address. toolq masks variables after the `?`, but not those before it.
fn url_template(server: &str, url: &str, notes: &mut Vec<String>) -> String {
    let (base, query) = match url.split_once('?') {
        Some((base, query)) => (base, Some(query)),
        None => (url, None),
    };
    let resolved = resolve_references(base);
    if looks_secret("", &resolved) {
        let variable = variable_name(server, "url");
        notes.push(format!(
            "the URL of the server {server:?} may be secret: set {variable} to it in the environment, and name {variable} under `secrets` so that it is masked"
        ));
        return format!("${{{variable}}}");
    }
    let Some(query) = query else {
        return escape_placeholders(&resolved);
    };
    let parameters = query.split('&').map(|parameter| {
        let (name, value) = parameter.split_once('=').unwrap_or(("", parameter));
        let template = value_template(name, value).unwrap_or_else(|| {
            let variable = variable_name(server, if name.is_empty() { "query" } else { name });
            notes.push(format!(
                "the parameter {name:?} in the URL of the server {server:?} may be secret: set {variable} to its value in the environment"
            ));
            format!("${{{variable}}}")
        });
        if parameter.contains('=') {
            format!("{name}={template}")
        } else {
            template
        }
    });
    let parameters: Vec<String> = parameters.collect();
    format!(
        "{}?{}",
        escape_placeholders(&resolved),
        parameters.join("&")
    )
}

/// Returns the name of the variable for a secret of a server: `SEARCH_API_KEY`.
fn variable_name(server: &str, what: &str) -> String {
    let name = format!("{server}_{what}").to_ascii_uppercase();
    let name = name.replace(|c: char| !c.is_ascii_alphanumeric(), "_");
    if name.starts_with(|c: char| c.is_ascii_digit()) {
        return format!("_{name}");
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_in_headers_become_variables() {
        for (name, value, expected) in [
            (
                "Authorization",
                "Bearer hunter2",
                "Bearer ${MY_API_AUTHORIZATION}",
            ),
            ("Authorization", "hunter2", "${MY_API_AUTHORIZATION}"),
            ("Authorization", "Bearer ${TOKEN}", "Bearer ${TOKEN}"),
            ("Authorization", "Bearer ${env:TOKEN}", "Bearer ${TOKEN}"),
            (
                "Authorization",
                "bearer ${TOKEN:-hunter2}",
                "bearer ${TOKEN}",
            ),
            (
                "Authorization",
                "Bearer a${TOKEN}",
                "Bearer ${MY_API_AUTHORIZATION}",
            ),
            ("X-Forward", "Basic hunter2", "Basic ${MY_API_X_FORWARD}"),
            ("X-API-Key", "${env:API_KEY}", "${API_KEY}"),
            ("Cookie", "a=hunter2; b=${B}", "${MY_API_COOKIE}"),
            ("X-Toolsets", "repos,issues", "repos,issues"),
            ("X-Readonly", "true", "true"),
            ("X-Region", "${REGION:-eu}", "${REGION:-eu}"),
            ("X-Format", "{json}", "{{json}"),
        ] {
            let mut notes = Vec::new();
            let template = header_template("my-api", name, value, &mut notes);
            assert_eq!(template, expected, "{name}: {value}");
            assert_eq!(notes.len(), usize::from(expected.contains("${MY_API")));
            assert!(!format!("{notes:?}").contains("hunter2"), "{notes:?}");
        }
    }

    #[test]
    fn secrets_in_an_address_become_variables() {
        for (url, expected) in [
            ("https://h.example/mcp", "https://h.example/mcp"),
            (
                "${BASE:-https://h.example}/mcp",
                "${BASE:-https://h.example}/mcp",
            ),
            (
                "https://h.example/mcp?v=1&key=hunter2",
                "https://h.example/mcp?v=1&key=${_1A_KEY}",
            ),
            (
                "https://h.example/mcp?key=${env:KEY}",
                "https://h.example/mcp?key=${KEY}",
            ),
            ("https://me:hunter2@h.example/mcp", "${_1A_URL}"),
            (
                "https://h.example/s/hunter2Zm9vYmFyMDEyMzQ1/mcp?a=b",
                "${_1A_URL}",
            ),
        ] {
            let mut notes = Vec::new();
            assert_eq!(url_template("1a", url, &mut notes), expected, "{url}");
            assert_eq!(notes.len(), usize::from(expected.contains("${_1A")));
            assert!(!format!("{notes:?}").contains("hunter2"), "{notes:?}");
        }
    }

    #[test]
    fn headers_of_the_protocol_are_left_out() {
        let headers = ["Accept", "MCP-Protocol-Version", "X-A"];
        let headers = headers.map(|name| (name.to_owned(), "a".to_owned()));
        let mut endpoint = ConfiguredEndpoint {
            url: "http://localhost:1/".to_owned(),
            headers: headers.into(),
        };
        assert_eq!(endpoint.remove_secrets("s").len(), 2);
        assert_eq!(
            endpoint.headers,
            [("X-A".to_owned(), "a".to_owned())].into()
        );
    }
}
