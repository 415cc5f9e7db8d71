use std::path::Path;

use super::*;
use crate::check::CallChecker;
use crate::testing::sample_call;
use crate::tools_file::parse_tools_file;
use crate::types::{ToolsConfig, Verdict};

const TOOLS: &str = r#"
version: 1
servers: {files: {command: [serve], max_parallel: 4}, free: {command: [serve]}}
tools:
  plain: {effect: read, input_schema: {type: object}, command: ["true"]}
  limited: {effect: read, input_schema: {type: object}, max_parallel: 5, command: ["true"]}
  list: {effect: read, input_schema: {type: object}, max_parallel: 6, mcp: {server: files}}
  free: {effect: read, input_schema: {type: object}, mcp: {server: free}}
  expert:
    max_parallel: 7
    input_schema: {type: object}
    agent: {endpoint: "http://127.0.0.1:1", api_key: "${KEY}", model: m, system: s, prompt: p}
"#;

/// What limits a call of this tool: the subject, the depth that counts, and the number of calls at once.
fn limits_of(tools: &Arc<ToolsConfig>, name: &str, depth: usize) -> Vec<String> {
    let checked = CallChecker::new(Arc::clone(tools)).check_call(sample_call(0, name, "{}"));
    let Verdict::Accepted(accepted) = checked.verdict else {
        panic!("{name}: {checked:?}");
    };
    let limits = applied_limits(&accepted, depth);
    let described = limits.iter().map(|(subject, limits)| {
        let depth = match subject {
            LimitedSubject::Tool(_, depth) => *depth,
            LimitedSubject::Server(_) => 0,
        };
        let most = limits.max_parallel.map_or(0, std::num::NonZero::get);
        format!("{subject}, depth {depth}: {most}")
    });
    described.collect()
}

#[test]
fn a_call_has_the_limits_of_its_tool_and_of_its_server() {
    let dir = Path::new("/work");
    let parsed = parse_tools_file(TOOLS, dir, dir);
    let tools = parsed.tools.map(Arc::new);
    let tools = tools.unwrap_or_else(|| panic!("{:?}", parsed.problems));
    let expected: [(&str, &[&str]); 5] = [
        ("plain", &[]),
        ("limited", &["limited, depth 0: 5"]),
        ("list", &["list, depth 0: 6", "server files, depth 0: 4"]),
        ("free", &[]),
        // One agent waits for those that it calls, so each depth has limits of its own.
        ("expert", &["expert, depth 3: 7"]),
    ];
    for (name, expected) in expected {
        assert_eq!(limits_of(&tools, name, 3), expected, "{name}");
    }
}
