//! The requests on the page about MCP are answered as it says.

use std::fs;
use std::process::Command;

use crate::serve_http::http_server::HttpServer;
use crate::support::{CliSandbox, lacks, repository_root};

/// Returns what the fence of this language contains that comes next, and what comes after it.
fn next_block<'p>(page: &'p str, language: &str) -> (&'p str, &'p str) {
    let (_, rest) = page.split_once(&format!("\n```{language}\n")).unwrap();
    rest.split_once("\n```\n").unwrap()
}

#[test]
fn the_requests_on_the_page_are_answered_as_it_says() {
    if lacks(&["curl"]) {
        return;
    }
    let page = fs::read_to_string(repository_root().join("docs/mcp.md")).unwrap();
    let (_, section) = page.split_once("### With curl").unwrap();
    let (script, after_script) = next_block(section, "sh");
    let (expected, _) = next_block(after_script, "json");
    let server = HttpServer::start_in(CliSandbox::in_repository(), &["-q", "--only", "count_*"]);
    let script = script.replace("127.0.0.1:8080", &server.address.to_string());
    let ran = Command::new("sh").args(["-ec", &script]).output().unwrap();
    let stderr = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success(), "{stderr}");
    assert_eq!(String::from_utf8_lossy(&ran.stdout).trim_end(), expected);
    server.end();
}
