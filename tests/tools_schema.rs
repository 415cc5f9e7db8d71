//! tools.schema.json: what editors are told is what toolq reads.

use std::path::Path;

use serde_json::Value;
use toolq_core::json_schema::Schema;
use toolq_core::tools_file::load;
use toolq_core::tools_file::{parse_yaml, tools_schema};

/// Every key once.
const EVERYTHING: &str = r#"
version: 1
concurrency: 4
root: work
secrets: [TOKEN]
defaults:
  timeout: {after: 30s, grace: 2s, slow: 5s, total: 2m}
  output: text
  max_output: 64KiB
  max_saved: 1048576
  retry: {times: 2, on: [rate_limited], backoff: 500ms, max_backoff: 30s}
  on_failure: continue
  pause_after_failures: 3
  coerce: false
  leftovers: report
  limits: {files: 64}
rules:
  - {tools: "{get,list}_*", concurrency_safe: true}
messages:
  timeout: "{tool} took longer than {timeout}"
  failed: "{error}"
  unavailable: "{error}"
  rate_limited: "{error}"
  invalid_input: "{details}"
  unknown_tool: "{details}"
  paused: "{tool}"
  not_executed: "{error}"
  interrupted: "{error}"
tools:
  get_rate:
    description: A rate.
    display_name: Rates
    category: money
    input_schema: {type: object, properties: {from: {type: string}, file: {type: string}}, required: [from, file]}
    effect: read
    concurrency_safe: {when: {required: [from]}}
    timeout: 5s
    estimate: 10ms
    paths: [file]
    status: {wait: "waits for {from}", doing: "asks for {from}"}
    http:
      method: POST
      url: "${BASE:-https://127.0.0.1}/rates/{from}"
      query: {q: "{from}"}
      headers: {authorization: "Bearer ${TOKEN}"}
      body: {from: "{from}", list: [1, null, true, "{file}"]}
      success_status: [200-299, 404]
      select: /rate
      redirects: 1
      proxy: "${PROXY:-http://127.0.0.1:3128}"
    output: json
    max_output: 1KiB
    max_saved: 1MiB
    retry: {times: 1, on: [rate_limited, unavailable, timeout, "exit:75", "http:503"], backoff: 1s}
    on_failure: stop
    pause_after_failures: 0
    coerce: true
    compare: json
    ignore: [/took_ms, //id]
    messages: {failed: "no rate: {error}"}
  list_files:
    input_schema: {type: object}
    concurrency_safe: true
    command: {argv: [ls, -l], stdin: none, env: {A: "1"}, pass_env: [B], cwd: sub, success_exit: [0, 1], leftovers: allow, limits: {cpu: 10s, memory: 1GiB, files: 64, processes: 32, file_size: 100MiB}}
  count:
    input_schema: {type: object}
    command: [wc, -l]
"#;

fn schema() -> Schema {
    Schema::compile(&tools_schema(), Path::new("/")).unwrap_or_else(|faults| panic!("{faults:#?}"))
}

fn as_json(text: &str) -> Value {
    parse_yaml(text)
        .unwrap_or_else(|problems| panic!("{problems:#?}"))
        .to_value()
}

#[test]
fn the_file_in_the_repository_is_up_to_date() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tools.schema.json");
    let file = std::fs::read_to_string(path).expect("tools.schema.json");
    let generated = format!("{:#}\n", tools_schema());
    assert!(
        file == generated,
        "renew it: toolq generate schema > tools.schema.json"
    );
}

#[test]
fn a_file_with_every_key_is_taken_by_both() {
    let loaded = load(EVERYTHING, Path::new("/srv"), Path::new("/srv"));
    assert!(loaded.problems.is_empty(), "{:#?}", loaded.problems);
    assert_eq!(loaded.tools.expect("tools").tools.len(), 3);
    let problems = schema().details(&as_json(EVERYTHING));
    assert!(problems.is_empty(), "{problems:#?}");
}

/// Whatever the schema refuses, toolq refuses too: an editor never complains of a good file.
#[test]
fn what_the_schema_refuses_is_refused() {
    for (good, bad) in [
        ("version: 1", "version: 2"),
        ("concurrency: 4", "concurrency: 0"),
        ("grace: 2s", "grace: 2"),
        ("secrets: [TOKEN]", "secrets: TOKEN"),
        ("effect: read", "effect: reed"),
        ("select: /rate", "selct: /rate"),
        ("redirects: 1", "redirects: 11"),
        ("[ls, -l]", "\"ls -l\""),
        ("{when: {required: [from]}}", "{wenn: {}}"),
        ("max_output: 64KiB", "max_output: 64 kilobytes"),
        ("\"exit:75\"", "\"exit 75\""),
        ("output: json", "output: yaml"),
        ("method: POST", "method: post"),
        ("leftovers: allow", "leftovers: keep"),
        ("files: 64, processes", "files: 3, processes"),
        ("processes: 32", "processes: 0"),
        (
            "    input_schema: {type: object}\n    concurrency_safe",
            "    concurrency_safe",
        ),
    ] {
        assert!(EVERYTHING.contains(good), "{good}");
        let text = EVERYTHING.replacen(good, bad, 1);
        assert!(!schema().details(&as_json(&text)).is_empty(), "{bad}");
        let loaded = load(&text, Path::new("/srv"), Path::new("/srv"));
        assert!(loaded.tools.is_none(), "{bad}");
    }
}
