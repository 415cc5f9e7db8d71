//! `toolq tools`: a tools.yaml in, declarations out, in the form that each API documents.

#![allow(clippy::unwrap_used, reason = "tests and their helpers may unwrap")]

mod support;

use std::path::Path;

use serde_json::{Value, json};
use support::{Toolq, response};
use toolq_core::json_schema::Schema;

/// Every key that says something of a tool: words for people and models, a schema beside the file, one that the tool
/// prints, types that are mended, effects, a built-in tool, and one of the file that takes its place.
const FILE: &str = r#"
version: 1
builtins: [attempt_completion, new_task]
tools:
  read_file:
    description: Reads a file.
    display_name: Reading
    category: files
    input_schema:
      type: object
      required: [path]
      additionalProperties: false
      properties:
        path: {type: string, minLength: 1, description: Where it is.}
        lines: {type: integer, default: 10}
        filter: {$ref: "filter.json"}
    coerce: true
    effect: read
    paths: [path]
    status: {doing: "reading {path}"}
    command: [cat, --, "{path}"]
  say:
    describe: [cat, said]
    display_name: Saying
    category: files
    effect: idempotent
    coerce: false
    command: [echo, "{x}"]
  ask:
    description: Knows.
    category: people
    input_schema: {type: object}
    agent: {endpoint: "http://127.0.0.1:1", model: m, tools: [read_file]}
  now:
    description: The time.
    input_schema: {type: object, properties: {}}
    command: [date]
  attempt_completion:
    description: My own.
    input_schema: {type: object, properties: {text: {type: string}}}
    command: [echo, mine]
"#;
const NAMES: [&str; 6] = [
    "read_file",
    "say",
    "ask",
    "now",
    "attempt_completion",
    "new_task",
];

fn toolq() -> Toolq {
    let said = json!({"description": "Says x.", "input_schema": {"type": "object", "properties": {"x": {"type": "string"}}, "required": ["x"]}});
    Toolq::new()
        .tools(FILE)
        .file(
            "filter.json",
            r#"{"type": "string", "description": "What to keep."}"#,
        )
        .file("said", said.to_string())
}

fn declared(format: &str) -> Value {
    toolq().run(&["tools", "--format", format]).exits(0).json()
}

/// What each API's reference says of one declaration, and where the input's schema stands in it. Members that it does
/// not name are refused.
fn forms() -> [(&'static str, Value, &'static str); 4] {
    let name = json!({"type": "string", "pattern": "^[a-zA-Z0-9_-]{1,64}$"});
    let text = json!({"type": "string", "minLength": 1});
    let input = json!({"type": "object", "required": ["type"], "properties": {"type": {"const": "object"}}});
    let closed = |properties: Value| {
        let required: Vec<String> = properties.as_object().unwrap().keys().cloned().collect();
        json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false})
    };
    let function = closed(json!({"name": name, "description": text, "parameters": input}));
    let hint = json!({"type": "boolean"});
    let hints = closed(json!({"readOnlyHint": hint, "idempotentHint": hint}));
    [
        (
            "anthropic",
            closed(json!({"name": name, "description": text, "input_schema": input})),
            "/input_schema",
        ),
        (
            "openai-chat",
            closed(json!({"type": {"const": "function"}, "function": function})),
            "/function/parameters",
        ),
        (
            "openai-responses",
            closed(
                json!({"type": {"const": "function"}, "name": name, "description": text, "parameters": input, "strict": {"const": false}}),
            ),
            "/parameters",
        ),
        (
            "mcp",
            closed(
                json!({"name": name, "title": text, "description": text, "inputSchema": input, "annotations": hints}),
            ),
            "/inputSchema",
        ),
    ]
}

#[test]
fn each_declaration_has_the_documented_form() {
    for (format, form, place) in forms() {
        let document = declared(format);
        let tools = if format == "mcp" {
            &document["tools"]
        } else {
            &document
        };
        let form = Schema::compile(&form, Path::new("/")).unwrap();
        let found = tools.as_array().unwrap();
        for tool in found {
            let problems = form.details(tool);
            assert!(problems.is_empty(), "{format}: {tool}\n{problems:#?}");
        }
        let name = |tool: &Value| {
            tool.pointer("/function/name")
                .unwrap_or(&tool["name"])
                .clone()
        };
        let names: Vec<Value> = found.iter().map(name).collect();
        assert_eq!(names, NAMES, "{format}");
        let input = |at: usize| found[at].pointer(place).unwrap();
        // What a model is told is what calls are checked by: constraints, the file beside, what the tool said.
        assert_eq!(input(0)["properties"]["path"]["minLength"], 1);
        assert!(
            input(0)["properties"]["filter"]["$ref"]
                .as_str()
                .unwrap()
                .starts_with("#/")
        );
        assert!(input(0).to_string().contains("What to keep."));
        assert_eq!(input(1)["required"], json!(["x"]));
        // The file's own wins over the built-in one.
        assert_eq!(
            input(4),
            &json!({"type": "object", "properties": {"text": {"type": "string"}}})
        );
    }
}

#[test]
fn mcp_is_told_names_for_people_and_effects() {
    let tools = declared("mcp")["tools"].clone();
    let of = |at: usize| (tools[at]["title"].clone(), tools[at]["annotations"].clone());
    let hints = |reads: bool, same: bool| json!({"readOnlyHint": reads, "idempotentHint": same});
    assert_eq!(of(0), (json!("Reading"), hints(true, true)));
    assert_eq!(of(1), (json!("Saying"), hints(false, true)));
    assert_eq!(of(3), (json!("now"), hints(false, false)));
}

#[test]
fn a_prompt_has_a_section_of_all_of_it() {
    let ran = toolq().run(&["tools", "--format", "markdown"]).exits(0);
    insta::assert_snapshot!(ran.stdout, @r#"
    # Available Tools

    ## files

    ### read_file (Reading)

    Reads a file.

    Parameters:

    - `path` (string, required): Where it is.
    - `lines` (integer, optional)
    - `filter` (string, optional): What to keep.

    ### say (Saying)

    Says x.

    Parameters:

    - `x` (string, required)

    ## people

    ### ask

    Knows.

    No parameters.

    ## Other

    ### now

    The time.

    No parameters.

    ### attempt_completion

    My own.

    Parameters:

    - `text` (string, optional)

    ### new_task

    Hand a task to an agent, and get its answer.

    Parameters:

    - `agent` (one of "ask", required): Who does it:
      - ask: Knows.
    - `task` (string, required): The task, with all that the agent has to know.
    "#);
}

/// What is declared is what runs.
#[test]
fn the_files_own_tool_runs_in_the_place_of_the_built_in_one() {
    let calls = response(&[
        ("attempt_completion", json!({"text": "?"})),
        ("now", json!({})),
    ]);
    let texts = toolq().stdin(calls).run(&["run"]).exits(0).texts();
    assert_eq!(texts[0], ("mine".to_owned(), false));
    assert!(!texts[1].1, "nothing is over: {}", texts[1].0);
}
