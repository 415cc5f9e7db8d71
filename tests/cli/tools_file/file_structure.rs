//! The structure of tools.yaml: keys, scalar types, schemas, size and YAML syntax.

use toolq_core::types::{Backing, Template};

use crate::support::CliSandbox;
use crate::tools_file::{
    assert_no_problems, assert_refused, file_with_lines, file_with_tool, load_text, load_tools,
};

/// A misspelled key must not be ignored: it could be the one that makes a tool safe.
#[test]
fn every_misspelled_key_is_refused() {
    let keys = "timeout paths effect concurrency_safe max_output max_saved retry on_failure pause_after_failures coerce
        input_schema output command http messages status compare ignore";
    for key in keys.split_whitespace() {
        let misspelled = [&key[..2], &key[3..]].concat();
        let loaded = load_text(&file_with_tool(&format!("{misspelled}: 1")));
        assert!(loaded.tools.is_none(), "{misspelled}");
        let hints: Vec<_> = loaded
            .problems
            .iter()
            .map(|problem| problem.hint.as_deref())
            .collect();
        assert_eq!(hints, [Some(&*format!("did you mean `{key}`?"))]);
    }
    assert_refused(
        file_with_lines,
        r#"
        secret: [A] ⇒ secret ⇒ unknown key
        rots: . ⇒ rots ⇒ unknown key
        concurency: 1 ⇒ concurency ⇒ unknown key
        default: {timeout: 1s} ⇒ default ⇒ unknown key
        defaults: {timout: 1s} ⇒ timout ⇒ unknown key
        rules: [{tools: t, concurrency_safe: true, efect: read}] ⇒ efect ⇒ unknown key
        prises: {} ⇒ prises ⇒ unknown key
        prices: {m: {input: 1, output: abc}} ⇒ abc ⇒ a price must be a number of dollars per million tokens
        prices: {m: {input: 1, output: "3.00"}} ⇒ "3.00" ⇒ a price must be a number of dollars per million tokens
        prices: {m: {input: -1, output: 1}} ⇒ -1 ⇒ isn't a valid price
        prices: {m: {input: 1, output: [1]}} ⇒ output ⇒ `output` must be a number of dollars per million tokens
        builtin: [] ⇒ builtin ⇒ unknown key
        "#,
    );
    assert_refused(
        file_with_tool,
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
        agent: {endpoint: "http://h", model: m, api_key: abc} ⇒ abc ⇒ doesn't belong in a file
        agent: {endpoint: "http://h", model: m, api_key: "${K:-sk-ant}"} ⇒ "${K:-sk-ant}" ⇒ doesn't belong in a file
        agent: {endpoint: "http://h", model: m, api_key: "${K:-abc}${L:-def}"} ⇒ "${K:-abc}${L:-def}" ⇒ doesn't belong in a file
        agent: {endpoint: "http://h", model: m, api_key: "sk-ant-1${K:-}"} ⇒ "sk-ant-1${K:-}" ⇒ doesn't belong in a file
        agent: {endpoint: "http://h", model: m, api_key: "Bearer ${K}"} ⇒ "Bearer ${K}" ⇒ doesn't belong in a file
        agent: {endpoint: "http://h", model: m, budget: {usd: abc}} ⇒ abc ⇒ `usd` must be a number
        agent: {endpoint: "http://h", model: m, tools: [t, t]} ⇒ t ⇒ is listed twice in `tools`
        agent: {endpoint: "http://{o}", model: m} ⇒ {o} ⇒ can't be used here
        "#,
    );
}

/// An API key is masked by the value of its variable, so a variable must hold the whole key. Each mistake has its own hint.
#[test]
fn an_api_key_consists_of_variables_only() {
    let agent = |key: &str| {
        file_with_tool(&format!(
            "agent: {{endpoint: 'http://h', model: m, api_key: '{key}'}}"
        ))
    };
    for (key, expected) in [
        ("sk-ant-1", "take it from the environment"),
        ("Bearer ${K}", "leave `Bearer` out; toolq adds it"),
        ("sk-ant-1${K:-}", "let the variable hold the whole key"),
        ("${NOPE_KEY:-sk-ant-INFILE12345}", "leave the default out"),
    ] {
        let problems = load_text(&agent(key)).problems;
        let hint = problems[0].hint.as_deref().unwrap();
        assert!(hint.starts_with(expected), "{key}: {hint}");
    }
    for key in ["${K}", "${A}${B}", "${K:-none}"] {
        assert!(load_text(&agent(key)).problems.is_empty(), "{key}");
    }
}

/// The last of two keys or tools with the same name would silently win.
#[test]
fn duplicate_keys_are_refused() {
    assert_refused(
        file_with_tool,
        r"
        timeout: 1s ⏎ timeout: 2s ⇒ timeout ⇒ duplicate key
        status: {doing: a, doing: b} ⇒ doing ⇒ duplicate key
        ",
    );
    assert_refused(
        str::to_owned,
        "{tools: {a: {input_schema: {}}, b: {}, a: {}}} ⇒ a ⇒ duplicate key",
    );
}

/// YAML 1.1 surprises (`no`, `0755`, `~`) are refused where the type is wrong, and kept as text where text is expected.
#[test]
fn yaml_scalars_keep_their_type() {
    assert_refused(
        file_with_tool,
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
    let text = file_with_tool("command: [chmod, 0755, no, 1_0]");
    let Some(Backing::Command(command)) = &load_tools(&text).tools[0].backing else {
        panic!("the tool has no command");
    };
    let texts: Vec<String> = command.arguments.iter().map(Template::to_string).collect();
    assert_eq!(texts, ["0755", "no", "1_0"]);
}

/// Schemas are checked when the file is read, and errors point to the offending part.
#[test]
fn schema_problems_point_into_the_schema() {
    let property = |schema: &str| {
        format!("tools: {{t: {{input_schema: {{type: object, properties: {{p: {schema}}}}}}}}}")
    };
    assert_refused(
        property,
        r##"
        {type: strin} ⇒ strin ⇒ is not a JSON Schema type
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
    assert_no_problems(property, "{type: integer, format: int32}");
    assert_refused(
        |keys| format!("tools: {{t: {{{keys}}}}}"),
        r"
        input_schema: {properties: {}} ⇒ input_schema ⇒ must say `type: object`
        input_schema: {type: array} ⇒ array ⇒ must say `type: object`
        input_schema: true ⇒ true ⇒ must say `type: object`
        description: none ⇒ t ⇒ has no `input_schema`
        ",
    );
    assert_refused(
        file_with_tool,
        "concurrency_safe: {when: {type: dict}} ⇒ dict ⇒ `dict`",
    );
}

/// A schema may be in a file of its own. Its errors are shown where the file is named.
#[test]
fn schema_files_are_read_and_checked() {
    let check = |name: &str, schema: &str| {
        let tools =
            format!("tools:\n  t:\n    input_schema: {name}\n    command: [echo, \"{{a}}\"]\n");
        let sandbox = CliSandbox::new().tools(&tools).file("sub/s.json", schema);
        sandbox.run(&["check", "--format", "json"])
    };
    let good = r#"{"type": "object", "properties": {"a": {"type": "integer", "minimum": 0}}, "required": ["a"]}"#;
    assert_eq!(check("sub/s.json", good).code, 0);
    for (name, schema, message) in [
        (
            "sub/gone.json",
            "{}",
            "the schema in sub/gone.json can't be used: No such file",
        ),
        (
            "sub",
            "{}",
            "the schema in sub can't be used: it isn't a regular file",
        ),
        (
            "sub/s.json",
            "{",
            "the schema in sub/s.json can't be used: it isn't JSON",
        ),
        (
            "sub/s.json",
            r#"{"const": 18446744073709551617}"#,
            "it has an integer beyond 64 bits, which would lose digits: 18446744073709551617",
        ),
        (
            "sub/s.json",
            r#"{"type": "object", "properties": {"a": {"type": "dict"}}}"#,
            "in sub/s.json at /properties/a/type: `dict` is not a JSON Schema type",
        ),
        (
            "sub/s.json",
            r#"{"type": "object", "properties": {"a": {"$ref": "b.json"}}}"#,
            "in sub/s.json at /properties/a/$ref: `b.json` leads out of the schema",
        ),
        (
            "sub/s.json",
            r#"{"type": "array"}"#,
            "must say `type: object`",
        ),
    ] {
        let output = check(name, schema);
        assert_eq!(output.code, 1, "{schema}");
        let problem = &output.json()["problems"][0];
        assert_eq!(problem["line"], 3, "{problem}");
        assert!(
            problem["message"].as_str().unwrap().contains(message),
            "{problem}"
        );
    }
}

/// A file without `tools` is invalid, regardless of what else it contains.
#[test]
fn a_file_needs_tools() {
    for text in [
        "",
        "# nothing\n",
        "[]",
        "version: 1\n",
        "tools: []\n",
        "tools:\n",
        "tools",
    ] {
        let loaded = load_text(text);
        assert!(loaded.tools.is_none(), "{text:?}");
        assert_eq!(loaded.problems.len(), 1, "{:#?}", loaded.problems);
    }
    assert!(load_tools("tools: {}").tools.is_empty());
}

/// Size alone isn't an error.
#[test]
fn two_thousand_tools_load() {
    let description = "x".repeat(2_000);
    let each = (0..2_000).map(|n| {
        format!("  tool_{n}:\n    description: {description}\n    input_schema: {{type: object, properties: {{a: {{type: string}}}}, required: [a]}}\n    command: [cat, --, \"{{a}}\"]\n")
    });
    let text = format!("tools:\n{}", each.collect::<String>());
    assert!(text.len() > 4 << 20);
    assert_eq!(load_tools(&text).tools.len(), 2_000);
}

/// A YAML syntax error says what to do about it.
#[test]
fn a_yaml_syntax_error_has_a_hint() {
    for (text, expected) in [
        ("tools:\n\ta: 1\n", "indent with spaces"),
        (
            "tools:\n  a: \"b\n  c: 1\n",
            "is there an unclosed quote before this?",
        ),
        ("tools: {a: {},,}\n", "leave it out"),
        ("tools:\n  a: {command: [date]},\n  b: {}\n", "leave it out"),
        ("", "`toolq init` writes an example"),
    ] {
        let problems = load_text(text).problems;
        let hints: Vec<_> = problems
            .iter()
            .map(|problem| problem.hint.as_deref())
            .collect();
        assert_eq!(hints, [Some(expected)], "{problems:#?}");
    }
}
