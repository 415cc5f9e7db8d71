//! The schema that editors use agrees with the loader.

use std::path::Path;

use serde_json::Value;
use toolq_core::json_schema::CompiledSchema;
use toolq_core::tools_file::{generate_tools_schema, parse_tools_file, parse_yaml};

/// A tools.yaml that has every key.
const FILE_WITH_EVERY_KEY: &str = r#"
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

fn compiled_schema() -> CompiledSchema {
    CompiledSchema::compile(&generate_tools_schema()).unwrap_or_else(|errors| panic!("{errors:#?}"))
}

fn yaml_to_json(text: &str) -> Value {
    parse_yaml(text)
        .unwrap_or_else(|problems| panic!("{problems:#?}"))
        .to_json()
}

#[test]
fn a_file_with_every_key_passes_schema_and_loader() {
    let loaded = parse_tools_file(FILE_WITH_EVERY_KEY, Path::new("/srv"), Path::new("/srv"));
    assert!(loaded.problems.is_empty(), "{:#?}", loaded.problems);
    assert_eq!(loaded.tools.expect("tools").tools.len(), 3);
    let problems = compiled_schema().problem_details(&yaml_to_json(FILE_WITH_EVERY_KEY));
    assert!(problems.is_empty(), "{problems:#?}");
}

/// The loader rejects whatever the schema rejects, so an editor never reports an error in a valid file.
#[test]
fn the_loader_rejects_what_the_schema_rejects() {
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
        ("{failed: \"no rate: {error}\"}", "{faild: Do}"),
        ("files: 64, processes", "files: 3, processes"),
        ("processes: 32", "processes: 0"),
        (
            "    input_schema: {type: object}\n    concurrency_safe",
            "    concurrency_safe",
        ),
    ] {
        assert!(FILE_WITH_EVERY_KEY.contains(good), "{good}");
        let text = FILE_WITH_EVERY_KEY.replacen(good, bad, 1);
        assert!(
            !compiled_schema()
                .problem_details(&yaml_to_json(&text))
                .is_empty(),
            "{bad}"
        );
        let loaded = parse_tools_file(&text, Path::new("/srv"), Path::new("/srv"));
        assert!(loaded.tools.is_none(), "{bad}");
    }
}
