//! What is no file of tools at all, or guesses.

use toolq_core::types::Backing;

use crate::{file, quiet, read, refused, tool, tools};

/// FAULTS 21: a misspelled safety field is no safety field.
#[test]
fn every_misspelled_key_is_refused() {
    let keys = "timeout paths effect concurrency_safe max_output max_saved retry on_failure pause_after_failures coerce
        input_schema output command http messages status compare ignore";
    for key in keys.split_whitespace() {
        let misspelled = [&key[..2], &key[3..]].concat();
        let loaded = read(&tool(&format!("{misspelled}: 1")));
        assert!(loaded.tools.is_none(), "{misspelled}");
        let hints: Vec<_> = loaded
            .problems
            .iter()
            .map(|problem| problem.hint.as_deref())
            .collect();
        assert_eq!(hints, [Some(&*format!("did you mean `{key}`?"))]);
    }
    refused(
        file,
        r#"
        secret: [A] ⇒ secret ⇒ unknown key
        rots: . ⇒ rots ⇒ unknown key
        concurency: 1 ⇒ concurency ⇒ unknown key
        default: {timeout: 1s} ⇒ default ⇒ unknown key
        defaults: {timout: 1s} ⇒ timout ⇒ unknown key
        rules: [{tools: t, concurrency_safe: true, effect: read}] ⇒ effect ⇒ unknown key
        prises: {} ⇒ prises ⇒ unknown key
        prices: {m: {input: 1, output: abc}} ⇒ abc ⇒ a price must be a number of dollars per million tokens
        prices: {m: {input: 1, output: "3.00"}} ⇒ "3.00" ⇒ a price must be a number of dollars per million tokens
        prices: {m: {input: -1, output: 1}} ⇒ -1 ⇒ is no price
        prices: {m: {input: 1, output: [1]}} ⇒ output ⇒ `output` must be a number of dollars per million tokens
        builtin: [] ⇒ builtin ⇒ unknown key
        "#,
    );
    refused(
        tool,
        r#"
        command: {argv: [a], sdtin: none} ⇒ sdtin ⇒ unknown key
        command: {argv: [a], limits: {cpus: 10s}} ⇒ cpus ⇒ unknown key
        http: {url: "http://h/", redirect: 1} ⇒ redirect ⇒ unknown key
        timeout: {afer: 1s} ⇒ afer ⇒ unknown key
        retry: {time: 1} ⇒ time ⇒ unknown key
        concurrency_safe: {} ⇒ concurrency_safe ⇒ has no `when`
        concurrency_safe: maybe ⇒ maybe ⇒ must be `true`, `false` or
        agent: {endpoint: "http://h", model: m, max_turn: 1} ⇒ max_turn ⇒ unknown key
        agent: {model: m} ⇒ agent ⇒ has no `endpoint`
        agent: {endpoint: "http://h", model: m, api_key: abc} ⇒ abc ⇒ doesn't belong into a file
        agent: {endpoint: "http://h", model: m, api_key: "${K:-sk-ant}"} ⇒ "${K:-sk-ant}" ⇒ doesn't belong into a file
        agent: {endpoint: "http://h", model: m, api_key: "${K:-abc}${L:-def}"} ⇒ "${K:-abc}${L:-def}" ⇒ doesn't belong into a file
        agent: {endpoint: "http://h", model: m, api_key: "sk-ant-1${K:-}"} ⇒ "sk-ant-1${K:-}" ⇒ doesn't belong into a file
        agent: {endpoint: "http://h", model: m, api_key: "Bearer ${K}"} ⇒ "Bearer ${K}" ⇒ doesn't belong into a file
        agent: {endpoint: "http://h", model: m, budget: {usd: abc}} ⇒ abc ⇒ `usd` must be a number
        agent: {endpoint: "http://h", model: m, tools: [t, t]} ⇒ t ⇒ stands twice in `tools`
        agent: {endpoint: "http://{o}", model: m} ⇒ {o} ⇒ cannot stand here
        "#,
    );
}

/// FAULTS 104: what masks a key is the variable that holds all of it. The cure is for what is wrong.
#[test]
fn a_key_is_variables_alone() {
    let agent = |key: &str| {
        tool(&format!(
            "agent: {{endpoint: 'http://h', model: m, api_key: '{key}'}}"
        ))
    };
    for (key, cure) in [
        ("sk-ant-1", "take it from the environment"),
        ("Bearer ${K}", "leave `Bearer` out, toolq adds it"),
        ("sk-ant-1${K:-}", "let the variable hold the whole key"),
        ("${NOPE_KEY:-sk-ant-INFILE12345}", "leave the default out"),
    ] {
        let problems = read(&agent(key)).problems;
        let hint = problems[0].hint.as_deref().unwrap();
        assert!(hint.starts_with(cure), "{key}: {hint}");
    }
    for key in ["${K}", "${A}${B}", "${K:-none}"] {
        assert!(read(&agent(key)).problems.is_empty(), "{key}");
    }
}

/// FAULTS 20.
#[test]
fn a_name_stands_once() {
    refused(
        tool,
        r"
        timeout: 1s ⏎ timeout: 2s ⇒ timeout ⇒ stands twice
        status: {doing: a, doing: b} ⇒ doing ⇒ stands twice
        ",
    );
    refused(
        str::to_owned,
        "{tools: {a: {input_schema: {}}, b: {}, a: {}}} ⇒ a ⇒ stands twice",
    );
}

/// FAULTS 22.
#[test]
fn yaml_does_not_guess() {
    refused(
        tool,
        r#"
        coerce: no ⇒ no ⇒ must be `true` or `false`
        coerce: 1 ⇒ 1 ⇒ must be `true` or `false`
        command: [sleep, 5] ⇒ 5 ⇒ an element of `command` must be text
        command: [echo, true] ⇒ true ⇒ must be text
        command: [echo, ~] ⇒ ~ ⇒ must be text
        command: [cat, --, {a}] ⇒ { ⇒ must be text
        pause_after_failures: "3" ⇒ "3" ⇒ must be a whole number
        pause_after_failures: -1 ⇒ -1 ⇒ must be a whole number
        pause_after_failures: 1.5 ⇒ 1.5 ⇒ must be a whole number
        timeout: 30 ⇒ 30 ⇒ needs a unit
        timeout: ⇒ timeout ⇒ must be a duration
        description: [a] ⇒ description ⇒ must be text
        status: doing ⇒ doing ⇒ must be a table
        "#,
    );
    let text = tool("command: [chmod, 0755, no, 1_0]");
    let Some(Backing::Command(command)) = &tools(&text).tools[0].backing else {
        panic!("no command");
    };
    let arguments = command.arguments.iter();
    let texts: Vec<String> = arguments
        .map(|argument| argument.template.to_string())
        .collect();
    assert_eq!(texts, ["0755", "no", "1_0"]);
}

/// FAULTS 24, 25, 26, 28: a schema is checked when the file is read, and its faults are shown in it.
#[test]
fn schemas_are_checked_where_they_stand() {
    let property = |schema: &str| {
        format!("tools: {{t: {{input_schema: {{type: object, properties: {{p: {schema}}}}}}}}}")
    };
    refused(
        property,
        r##"
        {type: strin} ⇒ strin ⇒ no type of JSON Schema
        {type: string, minLength: -1} ⇒ -1 ⇒
        {pattern: "(?=x)"} ⇒ "(?=x)" ⇒ backtracking
        {pattern: '(a)\1'} ⇒ '(a)\1' ⇒ backtracking
        {pattern: "(?:a{1000}){1000}"} ⇒ "(?:a{1000}){1000}" ⇒
        {pattern: "["} ⇒ "[" ⇒
        {$ref: "http://example.com/s.json"} ⇒ "http://example.com/s.json" ⇒
        {$ref: "file:///etc/passwd"} ⇒ "file:///etc/passwd" ⇒
        {$ref: "#/nowhere"} ⇒ "#/nowhere" ⇒
        "##,
    );
    quiet(property, "{type: integer, format: int32}");
    refused(
        |keys| format!("tools: {{t: {{{keys}}}}}"),
        r"
        input_schema: {properties: {}} ⇒ input_schema ⇒ must say `type: object`
        input_schema: {type: array} ⇒ array ⇒ must say `type: object`
        input_schema: true ⇒ true ⇒ must say `type: object`
        description: none ⇒ t ⇒ has no `input_schema`
        ",
    );
    refused(
        tool,
        "concurrency_safe: {when: {type: dict}} ⇒ dict ⇒ `dict`",
    );
}

/// A file without tools is none, whatever else it has.
#[test]
fn there_are_tools() {
    for text in [
        "",
        "# nothing\n",
        "[]",
        "version: 1\n",
        "tools: []\n",
        "tools:\n",
        "tools",
    ] {
        let loaded = read(text);
        assert!(loaded.tools.is_none(), "{text:?}");
        assert_eq!(loaded.problems.len(), 1, "{:#?}", loaded.problems);
    }
    assert!(tools("tools: {}").tools.is_empty());
}

/// FAULTS 19: size alone is no fault.
#[test]
fn two_thousand_tools_load() {
    let description = "x".repeat(2_000);
    let each = (0..2_000).map(|n| {
        format!("  tool_{n}:\n    description: {description}\n    input_schema: {{type: object, properties: {{a: {{type: string}}}}, required: [a]}}\n    command: [cat, --, \"{{a}}\"]\n")
    });
    let text = format!("tools:\n{}", each.collect::<String>());
    assert!(text.len() > 4 << 20);
    assert_eq!(tools(&text).tools.len(), 2_000);
}

/// FAULTS 23: what stops the YAML reader says what to do.
#[test]
fn a_text_that_is_no_yaml_has_a_cure() {
    for (text, cure) in [
        ("tools:\n\ta: 1\n", "indent with spaces"),
        (
            "tools:\n  a: \"b\n  c: 1\n",
            "is a quote before it not closed?",
        ),
        ("", "`toolq init` writes an example"),
    ] {
        let problems = read(text).problems;
        let hints: Vec<_> = problems
            .iter()
            .map(|problem| problem.hint.as_deref())
            .collect();
        assert_eq!(hints, [Some(cure)], "{problems:#?}");
    }
}
