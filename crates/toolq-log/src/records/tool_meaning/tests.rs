//! Which changes of tools.yaml change what a tool means.

use std::path::Path;

use toolq_core::tools_file::parse_tools_file;

use super::*;

/// Returns the aspects in which two tools differ.
fn difference_of(one: &str, other: &str) -> Vec<String> {
    let (one, other) = (meaning_of(one), meaning_of(other));
    let aspects: BTreeSet<&String> = one.keys().chain(other.keys()).collect();
    let differs = |aspect: &&String| one.get(*aspect) != other.get(*aspect);
    aspects.into_iter().filter(differs).cloned().collect()
}

fn meaning_of(yaml: &str) -> BTreeMap<String, String> {
    let loaded = parse_tools_file(yaml, Path::new("/work"), Path::new("/work"));
    let tools = loaded.tools.unwrap();
    definition_digests(&tools.tools[0])
}

const DEPLOY: &str = r#"
tools:
  deploy:
    description: Deploy a service.
    input_schema: {type: object, properties: {target: {type: string, pattern: "^[a-z]+$"}}, required: [target]}
    timeout: 5s
    command: {argv: [deploy, "--to={target}"], env: {A: "1", B: "${HOME}"}}
"#;

#[test]
fn comments_order_and_texts_change_no_meaning() {
    let rewritten = r#"
# Who may deploy: everyone.
tools:
  deploy:
    command:
      env:
        B: "${HOME}"   # for its cache
        A: "1"
      argv:
        - deploy
        - "--to={target}"
    description: Deploy a service, carefully.
    display_name: Deploying
    estimate: 2s
    timeout: 5s
    input_schema:
      required: [target]
      properties: {target: {pattern: "^[a-z]+$", type: string}}
      type: object
"#;
    assert_eq!(meaning_of(DEPLOY), meaning_of(rewritten));
}

#[test]
fn a_change_is_named_by_its_keys() {
    let difference = |from: &str, to: &str| {
        let changed = DEPLOY.replace(from, to);
        assert_ne!(changed, DEPLOY);
        difference_of(DEPLOY, &changed)
    };
    assert_eq!(difference("--to=", "--at="), ["command"]);
    assert_eq!(difference("A: \"1\"", "A: \"2\""), ["command"]);
    assert_eq!(difference("[a-z]+", "[a-y]+"), ["input_schema"]);
    assert_eq!(difference("timeout: 5s", "timeout: 6s"), ["timeout"]);
    assert_eq!(
        difference("timeout: 5s", "timeout: 5s\n    effect: read"),
        ["concurrency_safe", "effect"]
    );
    assert_eq!(
        difference("timeout: 5s", "timeout: 5s\n    output: json"),
        ["output"]
    );
    assert_eq!(
        difference("\"--to={target}\"", "\"{{target}\""),
        ["command"]
    );
}

const EXPERT: &str = r"
tools:
  expert:
    description: Ask an expert.
    input_schema: {type: object}
    output: json
    agent:
      model: m
      endpoint: https://api.example
      max_turns: 3
";

#[test]
fn what_an_agents_requests_ask_for_changes_its_meaning() {
    let difference_with = |key: &str| {
        let changed = EXPERT.replace("max_turns: 3", &format!("max_turns: 3\n      {key}"));
        difference_of(EXPERT, &changed)
    };
    for key in [
        "extra_body: {temperature: 0}",
        "extra_body: {thinking: {type: enabled, budget_tokens: 2000}}",
    ] {
        assert_eq!(difference_with(key), ["agent"], "{key}");
    }
    for (key, aspect) in [
        ("headers: {x-team: \"${TEAM}\"}", "headers"),
        ("api_key: \"${KEY}\"", "api_key"),
        ("max_tokens: 99", "max_tokens"),
    ] {
        assert_eq!(difference_with(key), [aspect], "{key}");
    }
    assert!(difference_with("extra_body: {}").is_empty());
}

#[test]
fn what_stands_for_an_empty_output_belongs_to_the_meaning() {
    let changed = EXPERT.replace("output: json", "output: json\n    empty: '[]'");
    assert_eq!(difference_of(EXPERT, &changed), ["empty"]);
}
