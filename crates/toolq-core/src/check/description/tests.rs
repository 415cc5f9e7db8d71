//! Which tools have to be described before calls can be checked.

use std::path::Path;

use super::*;

use crate::testing::sample_call;
use crate::tools_file::parse_tools_file;

const TOOLS: &str = r#"
builtins: [new_task]
tools:
  lead:
    description: Ask a model.
    input_schema: {type: object}
    agent: {endpoint: "https://api.example", model: m, max_turns: 3, tools: [expert, look, lead]}
  expert:
    description: Ask a model.
    input_schema: {type: object}
    agent: {endpoint: "https://api.example", model: m, max_turns: 3, tools: [plan, look]}
  plan:
    describe: [plan, --describe]
    command: {argv: [plan]}
  pay:
    describe: [pay, --describe]
    command: {argv: [pay]}
  look:
    description: Look.
    input_schema: {type: object}
    command: {argv: [look]}
"#;

#[test]
fn the_tools_that_calls_and_agents_may_run_are_described() {
    let tools = parse_tools_file(TOOLS, Path::new("/work"), Path::new("/work"));
    let tools = tools.tools.unwrap();
    let none: &[&str] = &[];
    for (calls, names) in [
        (vec![("look", "{}")], none),
        (vec![("plan", "{}"), ("plan", "{}")], &["plan"]),
        (vec![("pay", "{}"), ("lead", "{}")], &["pay", "plan"]),
        (vec![("missing", "{}")], none),
        (vec![("new_task", r#"{"agent": "expert"}"#)], &["plan"]),
        (vec![("new_task", r#"{"agent": "other"}"#)], none),
        (vec![("new_task", "[")], none),
    ] {
        let requested = calls.iter().enumerate();
        let requested: Vec<_> = requested
            .map(|(position, (name, input))| sample_call(position, name, input))
            .collect();
        let found = undescribed_tools(&tools, &requested);
        let found: Vec<_> = found.iter().map(|tool| &*tool.name).collect();
        assert_eq!(found, names, "{calls:?}");
    }
}

#[test]
fn a_description_without_an_object_schema_is_refused() {
    let parse = |schema: &str| {
        let output = format!(r#"{{"description": "Pay.", "input_schema": {schema}}}"#);
        parse_description(&output)
    };
    let described = parse(r#"{"type": "object"}"#).unwrap();
    assert_eq!(described.description.as_deref(), Some("Pay."));
    let no_object = "its input_schema doesn't have `\"type\": \"object\"`";
    for schema in ["{}", r#"{"type": "string"}"#, r#"{"type": ["object"]}"#] {
        assert_eq!(parse(schema).unwrap_err(), no_object, "{schema}");
    }
    let unusable = parse(r#"{"type": "object", "properties": 1}"#).unwrap_err();
    assert!(
        unusable.contains("its input_schema can't be used: "),
        "{unusable}"
    );
}
