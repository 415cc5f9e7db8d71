//! `toolq tools` exports the tools of a tools.yaml as declarations, in the form that each API documents.

use crate::support::{CliSandbox, model_response};
use serde_json::{Value, json};
use toolq_core::json_schema::CompiledSchema;

/// Every key that describes a tool: texts for people and models, a schema in a separate file, a schema that the tool
/// prints, coerced types, effects, a built-in tool, and a tool that replaces a built-in one.
const TOOLS: &str = r#"
version: 1
builtins: [attempt_completion, new_task]
tools:
  read_file:
    description: Reads a file.
    display_name: Reading
    category: files
    input_schema: read.json
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
const TOOL_NAMES: [&str; 6] = [
    "read_file",
    "say",
    "ask",
    "now",
    "attempt_completion",
    "new_task",
];

fn toolq() -> CliSandbox {
    let description = json!({"description": "Says x.", "input_schema": {"type": "object", "properties": {"x": {"type": "string"}}, "required": ["x"]}});
    CliSandbox::new()
        .tools(TOOLS)
        .file(
            "read.json",
            r##"{
                "type": "object",
                "required": ["path"],
                "additionalProperties": false,
                "properties": {
                    "path": {"type": "string", "minLength": 1, "description": "Where it is."},
                    "lines": {"type": "integer", "default": 10},
                    "filter": {"$ref": "#/$defs/filter"}
                },
                "$defs": {"filter": {"type": "string", "description": "What to keep."}}
            }"##,
        )
        .file("said", description.to_string())
}

fn export(format: &str) -> Value {
    toolq()
        .run(&["tools", "--format", format])
        .assert_exit(0)
        .json()
}

/// Returns, for each format, a JSON Schema of one declaration according to the API's reference, and the JSON pointer
/// to the input schema in it. Members that the reference doesn't name aren't allowed.
fn declaration_schemas() -> [(&'static str, Value, &'static str); 4] {
    let name = json!({"type": "string", "pattern": "^[a-zA-Z0-9_-]{1,64}$"});
    let text = json!({"type": "string", "minLength": 1});
    let input = json!({"type": "object", "required": ["type"], "properties": {"type": {"const": "object"}}});
    let closed_object = |properties: Value| {
        let required: Vec<String> = properties.as_object().unwrap().keys().cloned().collect();
        json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false})
    };
    let function = closed_object(json!({"name": name, "description": text, "parameters": input}));
    let hint = json!({"type": "boolean"});
    let hints = closed_object(json!({"readOnlyHint": hint, "idempotentHint": hint}));
    [
        (
            "anthropic",
            closed_object(json!({"name": name, "description": text, "input_schema": input})),
            "/input_schema",
        ),
        (
            "openai-chat",
            closed_object(json!({"type": {"const": "function"}, "function": function})),
            "/function/parameters",
        ),
        (
            "openai-responses",
            closed_object(
                json!({"type": {"const": "function"}, "name": name, "description": text, "parameters": input, "strict": {"const": false}}),
            ),
            "/parameters",
        ),
        (
            "mcp",
            closed_object(
                json!({"name": name, "title": text, "description": text, "inputSchema": input, "annotations": hints}),
            ),
            "/inputSchema",
        ),
    ]
}

#[test]
fn each_declaration_has_the_documented_form() {
    for (format, schema, pointer) in declaration_schemas() {
        let document = export(format);
        let tools = if format == "mcp" {
            &document["tools"]
        } else {
            &document
        };
        let schema = CompiledSchema::compile(&schema).unwrap();
        let found = tools.as_array().unwrap();
        for tool in found {
            let problems = schema.problem_details(tool);
            assert!(problems.is_empty(), "{format}: {tool}\n{problems:#?}");
        }
        let name = |tool: &Value| {
            tool.pointer("/function/name")
                .unwrap_or(&tool["name"])
                .clone()
        };
        let names: Vec<Value> = found.iter().map(name).collect();
        assert_eq!(names, TOOL_NAMES, "{format}");
        let input = |at: usize| found[at].pointer(pointer).unwrap();
        // The model sees the same schema that calls are checked against: with its constraints, with the schema of
        // the separate file, and with the one that the tool printed.
        assert_eq!(input(0)["properties"]["path"]["minLength"], 1);
        assert!(
            input(0)["properties"]["filter"]["$ref"]
                .as_str()
                .unwrap()
                .starts_with("#/")
        );
        assert!(input(0).to_string().contains("What to keep."));
        assert_eq!(input(1)["required"], json!(["x"]));
        // A tool in the file replaces the built-in tool of the same name.
        assert_eq!(
            input(4),
            &json!({"type": "object", "properties": {"text": {"type": "string"}}})
        );
    }
}

#[test]
fn mcp_declarations_have_titles_and_effect_hints() {
    let tools = export("mcp")["tools"].clone();
    let of = |at: usize| (tools[at]["title"].clone(), tools[at]["annotations"].clone());
    let hints = |reads: bool, same: bool| json!({"readOnlyHint": reads, "idempotentHint": same});
    assert_eq!(of(0), (json!("Reading"), hints(true, true)));
    assert_eq!(of(1), (json!("Saying"), hints(false, true)));
    assert_eq!(of(3), (json!("now"), hints(false, false)));
}

#[test]
fn markdown_lists_every_tool_by_category() {
    let ran = toolq()
        .run(&["tools", "--format", "markdown"])
        .assert_exit(0);
    insta::assert_snapshot!(ran.stdout, @r#"
    # Available Tools

    6 tools

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

    Delegate a task to an agent and get its answer.

    Parameters:

    - `agent` (one of "ask", required): The agent for the task:
      - ask: Knows.
    - `task` (string, required): The task, with everything that the agent needs to know.
    "#);
}

/// The tool that runs is the one that is declared.
#[test]
fn a_tool_in_the_file_replaces_the_builtin() {
    let calls = model_response(&[
        ("attempt_completion", json!({"text": "?"})),
        ("now", json!({})),
    ]);
    let texts = toolq()
        .stdin(calls)
        .run(&["run"])
        .assert_exit(0)
        .result_texts();
    assert_eq!(texts[0], ("mine".to_owned(), false));
    assert!(!texts[1].1, "the conversation isn't over: {}", texts[1].0);
}
