//! tools.yaml: any text gives tools or errors at places that exist, and any tools can check a call.

use std::path::Path;
use std::sync::Arc;

use toolq_core::check::CallChecker;
use toolq_core::os::Environment;
use toolq_core::tools_file::{find_warnings, parse_tools_file};
use toolq_core::types::{FileProblem, Severity};
use toolq_testing::sample_call;

/// A directory that doesn't exist, so that no file is read.
const DIR: &str = "/nonexistent/toolq";
/// Inputs for every tool.
const INPUTS: [&str; 3] = [
    "{}",
    r#"{"path":"a","n":"1","list":["-x"],"text":"{a}"}"#,
    r#"{"path":null}"#,
];

/// Parses a tools.yaml.
pub fn tools_file(data: &[u8]) {
    let Ok(text) = str::from_utf8(data) else {
        return;
    };
    let dir = Path::new(DIR);
    let parsed = parse_tools_file(text, dir, dir);
    check_problems(&parsed.problems, text);
    let has_error = parsed
        .problems
        .iter()
        .any(|problem| problem.severity == Severity::Error);
    assert_eq!(parsed.tools.is_none(), has_error, "{:?}", parsed.problems);
    let (Some(tools), Some(tree)) = (parsed.tools, parsed.tree) else {
        return;
    };
    let warnings = find_warnings(&tools, &tree, &Environment::default());
    check_problems(&warnings, text);
    let checker = CallChecker::new(Arc::new(tools.clone()));
    for tool in &tools.tools {
        for input in INPUTS {
            let _ = checker.check_call(sample_call(0, &tool.name, input));
        }
    }
}

fn check_problems(problems: &[FileProblem], text: &str) {
    for problem in problems {
        let span = problem.span;
        let marked = text.get(span.start..span.start + span.len);
        assert!(marked.is_some(), "no such place: {problem:?}");
        assert!(!problem.message.is_empty());
    }
}
