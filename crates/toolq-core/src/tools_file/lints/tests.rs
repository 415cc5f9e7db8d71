use std::ffi::OsString;
use std::fs;
use std::path::Path;

use super::*;
use crate::tools_file::load::parse_tools_file;

/// What is missing is reported before a model calls the tool.
#[test]
fn environment_problems_are_warned_about() {
    let dir = tempfile::tempdir().unwrap();
    let text = r#"root: missing
secrets: [NONE, SET, LONG]
tools:
  a: {input_schema: {type: object}, command: [no-such-program]}
  b: {input_schema: {type: object}, command: {argv: [./plain], env: {X: "${UNSET} ${SET} ${D:-d}"}}}
  c: {input_schema: {type: object}, command: [./directory]}
  d: {input_schema: {type: object}, http: {url: "${BASE}/", body: ["${UNSET}"]}}
  e: {input_schema: {type: object}, command: {argv: [cat], cwd: sub}}
  f: {describe: [no-describe], probe: [no-probe], command: [cat]}
  g: {describe: [./plain]}
"#;
    fs::write(dir.path().join("plain"), "no program").unwrap();
    fs::create_dir(dir.path().join("directory")).unwrap();
    let variables = [("PATH", "/usr/bin:/bin"), ("SET", "1"), ("LONG", "123456")];
    let environment = variables
        .map(|(name, value)| (OsString::from(name), OsString::from(value)))
        .into_iter()
        .collect();
    let loaded = parse_tools_file(text, dir.path(), dir.path());
    let (tools, tree) = (loaded.tools.unwrap(), loaded.tree.unwrap());
    let found: Vec<(String, &str)> = find_warnings(&tools, &tree, &environment)
        .into_iter()
        .map(|problem| {
            let Span { start, len } = problem.span;
            (problem.message, &text[start..start + len])
        })
        .collect();
    let expected = [
        ("the root isn't a directory", "missing"),
        (
            "the variable NONE is unset or empty, so nothing is masked",
            "NONE",
        ),
        ("the value of SET is too short to be masked", "SET"),
        ("`g` has no `command`, `http`, `agent` or `mcp`", "g"),
        ("`no-such-program` was not found", "no-such-program"),
        ("`./plain` is not executable", "./plain"),
        ("`./directory` was not found", "./directory"),
        ("there is no directory `sub` in the root", "sub"),
        ("`no-describe` was not found", "no-describe"),
        ("`no-probe` was not found", "no-probe"),
        ("`./plain` is not executable", "./plain"),
        (
            "the variable UNSET is unset or empty (1 more tool needs it)",
            "command",
        ),
        ("the variable BASE is unset or empty", "http"),
    ];
    assert_eq!(
        found,
        expected.map(|(message, at)| (message.to_owned(), at))
    );
}

/// A default would put the key into the file.
#[test]
fn no_default_is_suggested_for_an_api_key() {
    let text = "tools:\n  a: {input_schema: {type: object}, agent: {endpoint: \"${BASE}\", api_key: \"${KEY}\", model: m}}\n";
    let loaded = parse_tools_file(text, Path::new("/"), Path::new("/"));
    let (tools, tree) = (loaded.tools.unwrap(), loaded.tree.unwrap());
    let empty_environment = std::iter::empty::<(OsString, OsString)>().collect();
    let found = unset_variable_warnings(&tools, &tree, &empty_environment);
    let hints: Vec<_> = found
        .iter()
        .map(|problem| problem.hint.as_deref().unwrap())
        .collect();
    assert_eq!(
        hints,
        [
            "set it, or give a default: `${BASE:-…}`",
            "set it; don't give a key a default, which would be visible in the file",
        ]
    );
}
