use std::ffi::OsString;
use std::fs;

use super::*;

use crate::tools_file::resolve::load;

/// FAULTS 32, 33: what is not there is said before a model calls it.
#[test]
fn what_only_the_machine_can_tell() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("tools.yaml");
    let text = r#"root: missing
secrets: [NONE, SET, LONG]
tools:
  a: {input_schema: {type: object}, command: [no-such-program]}
  b: {input_schema: {type: object}, command: {argv: [./plain], env: {X: "${UNSET} ${SET} ${D:-d}"}}}
  c: {input_schema: {type: object}, command: [./folder]}
  d: {input_schema: {type: object}, http: {url: "${BASE}/", body: ["${UNSET}"]}}
  e: {input_schema: {type: object}, command: {argv: [sh], cwd: sub}}
  f: {describe: [no-describe], probe: [no-probe], command: [sh]}
  g: {describe: [./plain]}
"#;
    fs::write(&file, text).unwrap();
    fs::write(dir.path().join("plain"), "no program").unwrap();
    fs::create_dir(dir.path().join("folder")).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o666)).unwrap();
    let variables = [("PATH", "/usr/bin:/bin"), ("SET", "1"), ("LONG", "123456")];
    let environment = variables
        .map(|(name, value)| (OsString::from(name), OsString::from(value)))
        .into_iter()
        .collect();
    let loaded = load(text, dir.path(), dir.path());
    let (tools, tree) = (loaded.tools.unwrap(), loaded.tree.unwrap());
    let found: Vec<(String, &str)> = warnings(&tools, &tree, &file, &environment)
        .into_iter()
        .map(|problem| {
            let Span { start, len } = problem.span;
            (problem.message, &text[start..start + len])
        })
        .collect();
    let expected = [
        ("everybody may change this file, and so what toolq runs", ""),
        ("the root is no folder", "missing"),
        (
            "the variable NONE is not set or empty, so nothing is masked",
            "NONE",
        ),
        ("the value of SET is too short to be masked", "SET"),
        ("`g` has no `command`, `http` or `agent`", "g"),
        ("`no-such-program` is not there", "no-such-program"),
        ("`./plain` is not executable", "./plain"),
        ("`./folder` is not there", "./folder"),
        ("there is no folder `sub` in the root", "sub"),
        ("`no-describe` is not there", "no-describe"),
        ("`no-probe` is not there", "no-probe"),
        ("`./plain` is not executable", "./plain"),
        (
            "the variable UNSET is not set or empty (1 more tool needs it)",
            "command",
        ),
        ("the variable BASE is not set or empty", "http"),
    ];
    assert_eq!(
        found,
        expected.map(|(message, at)| (message.to_owned(), at))
    );
}

/// A default would be a key that stands in the file.
#[test]
fn a_missing_key_is_to_be_set() {
    let text = "tools:\n  a: {input_schema: {type: object}, agent: {endpoint: \"${BASE}\", api_key: \"${KEY}\", model: m}}\n";
    let loaded = load(text, Path::new("/"), Path::new("/"));
    let (tools, tree) = (loaded.tools.unwrap(), loaded.tree.unwrap());
    let nothing = std::iter::empty::<(OsString, OsString)>().collect();
    let found = unset(&tools, &tree, &nothing);
    let hints: Vec<_> = found
        .iter()
        .map(|problem| problem.hint.as_deref().unwrap())
        .collect();
    assert_eq!(
        hints,
        [
            "set it, or give a default: `${BASE:-…}`",
            "set it; a key has no default, for that would stand in the file",
        ]
    );
}
