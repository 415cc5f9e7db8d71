//! Attacks every request that the documents and fixtures declare: no value changes the server or adds to the request.

use serde_json::{Value, json};
use toolq_core::types::{Backing, HttpBacking, TemplatePart, Tool};

use crate::injection::declared_files::{DeclaredFile, each_tool};
use crate::injection::documents::{ORDINARY, calls_with};
use crate::support::{CliSandbox, model_response};

/// Values that could change a URL or a header.
const ATTACKS: [&str; 16] = [
    "..",
    "../../admin",
    "a/../../admin",
    "/admin",
    "//evil.example/",
    "a/b",
    "a?admin=1",
    "a&admin=1",
    "a#b",
    "%2e%2e%2fadmin",
    "@evil.example/",
    "http://evil.example/",
    "https://api.example.com@evil.example/",
    "https://api.example.com.evil.example/",
    "a\r\nx-admin: 1",
    "\"},\"admin\":true,\"x\":{\"",
];

/// What is planned for a call: its request, or `None` if its input is refused.
fn planned_requests(file: &DeclaredFile, calls: &[(String, Value)]) -> Vec<Option<Value>> {
    let called: Vec<(&str, Value)> = calls
        .iter()
        .map(|(name, input)| (name.as_str(), input.clone()))
        .collect();
    let ran = CliSandbox::new()
        .tools(&file.text)
        .stdin(model_response(&called))
        .run(&["plan", "--format", "json"])
        .assert_exit(0);
    let mut requests = vec![None; calls.len()];
    for batch in ran.json()["batches"].as_array().unwrap() {
        for call in batch["calls"].as_array().unwrap() {
            let position = usize::try_from(call["position"].as_u64().unwrap()).unwrap();
            requests[position] = Some(call["runs"]["http"].clone());
        }
    }
    requests
}

fn each_request(mut visit: impl FnMut(&DeclaredFile, &Tool, &HttpBacking)) {
    each_tool(|file, tool| {
        if let Some(Backing::Http(http)) = &tool.backing {
            visit(file, tool, http);
        }
    });
}

/// Returns the host that a URL names, or fails if it has a user or a password.
fn host(url: &str) -> &str {
    let (_, rest) = url.split_once("://").unwrap();
    let authority = rest.split(['/', '?', '#']).next().unwrap();
    assert!(!authority.contains('@'), "{url}");
    authority.split(':').next().unwrap()
}

/// Asserts that a request goes where the file says, and has no more parts than it declares.
fn assert_is_declared(tool: &Tool, http: &HttpBacking, request: &Value) {
    let url = request["url"].as_str().unwrap();
    match (&http.allowed_hosts, http.url.parts.first()) {
        (None, Some(TemplatePart::Text(start))) => {
            assert!(url.starts_with(start.as_str()), "{}: {url}", tool.name);
            let rest = url.strip_prefix(start.as_str()).unwrap();
            assert!(!rest.contains("/admin"), "{}: {url}", tool.name);
        }
        (Some(hosts), _) => {
            assert!(
                hosts.iter().any(|pattern| pattern.matches(host(url))),
                "{}: {url}",
                tool.name
            );
        }
        _ => panic!("{}: no server in {url}", tool.name),
    }
    let members = |part: &str| request[part].as_object().map_or(0, serde_json::Map::len);
    assert!(members("query") <= http.query.len(), "{request}");
    assert!(members("headers") <= http.headers.len(), "{request}");
    assert!(
        !request["url"].as_str().unwrap().contains("&admin"),
        "{request}"
    );
    assert_eq!(request["body"].get("admin"), None, "{request}");
}

#[test]
fn no_documented_request_leaves_its_server() {
    let mut attacked = 0;
    each_request(|file, tool, http| {
        let calls = calls_with(tool, &ATTACKS.map(str::to_owned));
        for request in planned_requests(file, &calls).iter().flatten() {
            assert_is_declared(tool, http, request);
        }
        attacked += usize::from(!calls.is_empty());
    });
    assert!(attacked >= 5, "only {attacked} requests were attacked");
}

/// The same declarations send ordinary values, whole.
#[test]
fn every_documented_request_sends_ordinary_values() {
    let mut sent = 0;
    each_request(|file, tool, http| {
        let values: Vec<String> = match &http.allowed_hosts {
            None => ORDINARY.map(str::to_owned).into(),
            Some(hosts) => {
                let known = ["api.example.com", "docs.rs"];
                let allowed = |name: &&str| hosts.iter().any(|pattern| pattern.matches(name));
                let name = known.into_iter().find(allowed).unwrap();
                vec![format!("https://{name}/a%20b/ü?q=it's")]
            }
        };
        let calls = calls_with(tool, &values);
        let schema = crate::injection::documents::compiled_schema(tool);
        let calls: Vec<_> = calls
            .into_iter()
            .filter(|(_, input)| schema.accepts(input))
            .collect();
        for ((_, input), request) in calls.iter().zip(planned_requests(file, &calls)) {
            let request = request.unwrap_or_else(|| panic!("{}: {input} is refused", tool.name));
            assert_is_declared(tool, http, &request);
            sent += 1;
        }
    });
    assert!(sent >= 10, "only {sent} values were sent");
    assert_eq!(json!(host("https://a.b:80/c?d")), json!("a.b"));
}
