//! How tools.yaml words the built-in tools.

use std::path::Path;

use crate::tools_file::parse_tools_file;
use crate::tools_file::select_agent_tools;
use crate::types::Backing;

const WORDED: &str = r#"
builtins: [attempt_completion, new_task]
messages:
  attempt_completion: {description: "给出最终答案。", result: "完整的答案。"}
  new_task: {description: "委派任务。", agent: "负责的专家 {x}:", task: "任务。"}
tools:
  boss: {input_schema: {type: object}, agent: {model: m, endpoint: "https://h.example", tools: [new_task, attempt_completion]}}
  law: {description: Knows the law., input_schema: {type: object}, agent: {model: m, endpoint: "https://h.example"}}
"#;

fn problems_of(text: &str) -> Vec<String> {
    let loaded = parse_tools_file(text, Path::new("/"), Path::new("/"));
    loaded.problems.into_iter().map(|it| it.message).collect()
}

#[test]
fn messages_word_built_in_tools_as_an_agents_model_reads_them() {
    let tools = parse_tools_file(WORDED, Path::new("/"), Path::new("/"));
    assert_eq!(tools.problems, []);
    let tools = tools.tools.unwrap();
    let boss = tools.get("boss").unwrap();
    let Some(Backing::Agent(backing)) = &boss.backing else {
        panic!("{boss:?}")
    };
    let offered = select_agent_tools(&tools, boss, backing);
    let [new_task, completion] = offered.as_slice() else {
        panic!("{offered:?}")
    };
    let input = |schema: &serde_json::Value, name: &str| {
        let text = &schema["properties"][name]["description"];
        text.as_str().unwrap().to_owned()
    };
    assert_eq!(new_task.description, "委派任务。");
    let schema = &new_task.input_schema;
    assert_eq!(
        input(schema, "agent"),
        "负责的专家 {x}:\n- law: Knows the law."
    );
    assert_eq!(input(schema, "task"), "任务。");
    assert_eq!(completion.description, "给出最终答案。");
    assert_eq!(input(&completion.input_schema, "result"), "完整的答案。");
}

#[test]
fn a_wording_that_no_built_in_tool_has_is_reported() {
    let unused = WORDED.replace(
        "[attempt_completion, new_task]\nmessages",
        "[new_task]\nmessages",
    );
    let unused = unused.replace("tools: [new_task, attempt_completion]", "tools: [new_task]");
    assert_eq!(
        problems_of(&unused),
        ["this file doesn't use the built-in tool `attempt_completion`"]
    );
    let of_a_tool = WORDED.replace("law: {", "law: {messages: {new_task: {task: T}}, ");
    assert_eq!(
        problems_of(&of_a_tool),
        ["a tool can't word a built-in tool"]
    );
}

#[test]
fn messages_word_the_reader_of_outputs_and_defaults_limit_it() {
    let text = r#"
builtins: [read_output]
defaults: {max_output: 5KiB}
messages:
  read_output: {description: "继续读取。", id: "标识。"}
tools: {a: {input_schema: {type: object}, effect: read, command: [date]}}
"#;
    let parsed = parse_tools_file(text, Path::new("/"), Path::new("/"));
    let tools = parsed.tools.unwrap();
    let reader = tools.get("read_output").unwrap();
    let properties = &reader.input_schema["properties"];
    assert_eq!(reader.description, "继续读取。");
    assert_eq!(properties["id"]["description"], "标识。");
    assert_eq!(properties["limit"]["maximum"], 5 << 10);
    let limit = properties["limit"]["description"].as_str().unwrap();
    assert!(limit.ends_with("Default: 5120."), "{limit}");
    assert_eq!(tools.output_reader(), Some("read_output"));
    let unused = text.replace("builtins: [read_output]\n", "");
    assert_eq!(
        problems_of(&unused),
        ["this file doesn't use the built-in tool `read_output`"]
    );
}
