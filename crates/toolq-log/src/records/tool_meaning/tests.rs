//! Which changes of tools.yaml change what a tool means.

use std::path::Path;

use toolq_core::tools_file::parse_tools_file;

use super::*;

/// Returns the aspects in which two tools differ.
fn difference_of(one: &str, other: &str) -> Vec<&'static str> {
    let (one, other) = (meaning_of(one), meaning_of(other));
    let aspects: BTreeSet<&str> = one.0.keys().chain(other.0.keys()).copied().collect();
    let differs = |aspect: &&str| one.0.get(aspect) != other.0.get(aspect);
    aspects.into_iter().filter(differs).collect()
}

fn meaning_of(yaml: &str) -> Aspects {
    let loaded = parse_tools_file(yaml, Path::new("/work"), Path::new("/work"));
    let tools = loaded.tools.unwrap();
    Aspects::new(&tools.tools[0])
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
    timeout: 60s
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
    assert_eq!(difference("timeout: 5s", "effect: read"), ["effect"]);
    assert_eq!(difference("timeout: 5s", "output: json"), ["output"]);
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
    for key in [
        "headers: {x-team: \"${TEAM}\"}",
        "api_key: \"${KEY}\"",
        "max_tokens: 99",
        "extra_body: {}",
    ] {
        assert!(difference_with(key).is_empty(), "{key}");
    }
}

#[test]
fn what_stands_for_an_empty_output_belongs_to_the_meaning() {
    let changed = EXPERT.replace("output: json", "output: json\n    empty: '[]'");
    assert_eq!(difference_of(EXPERT, &changed), ["empty"]);
}
