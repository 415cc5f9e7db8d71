//! Placeholders: checked against the input schema, with the position of each problem.

use crate::tools_file::{assert_no_problems, assert_refused, assert_warned, file_with_tool};

/// A value becomes one argument; only `{x...}` spreads an array into one argument per item.
#[test]
fn placeholders_must_be_in_the_schema() {
    assert_refused(
        file_with_tool,
        r#"
        command: [cat, --, "{pth}"] ⇒ {pth} ⇒ has no `pth`
        command: [jq, '.x | {b}'] ⇒ {b} ⇒ has no `b`
        command: [cat, --, "é {a} {a.b}"] ⇒ {a.b} ⇒ `a` has no `b`
        command: [cat, --, "x{list?...}"] ⇒ {list?...} ⇒ isn't a whole argument
        command: [cat, --, "x{list...}"] ⇒ {list...} ⇒ isn't a whole argument
        command: [cat, --, "{a...}"] ⇒ {a...} ⇒ isn't an array
        command: {argv: [cat], stdin: "{list?...}"} ⇒ {list?...} ⇒ isn't a whole argument
        paths: [pth] ⇒ pth ⇒ has no `pth`
        paths: ["a b"] ⇒ "a b" ⇒ isn't a valid name of an input
        status: {doing: "reading {pth}"} ⇒ {pth} ⇒ has no `pth`
        "#,
    );
    assert_warned(
        file_with_tool,
        r#"
        command: [cat, --, "{o}"] ⇒ {o} ⇒ isn't required
        command: [cat, --, "{list...}"] ⇒ {list...} ⇒ isn't required
        command: [cat, --, "{{a}}"] ⇒ {{a}} ⇒ is the text `{a}}`
        command: [cat, --, "${HOME}"] ⇒ ${HOME} ⇒ stays text
        "#,
    );
    assert_no_problems(
        file_with_tool,
        r#"
        command: [cat, --, "{o?}", "{list?...}", "{{o}", "$${HOME}", "{1} {a,b}"]
        status: {wait: "waiting for {o}", doing: "{a}"}
        paths: [a, o]
        "#,
    );
}

/// A name under `paths` leads through lists, which stand for each of their elements.
#[test]
fn a_path_may_stand_in_a_list() {
    let tool = |paths: &str| {
        let item = "{type: object, properties: {path: {type: string}}}";
        let list = format!("{{type: array, items: {item}}}");
        let nested = format!("{{type: array, items: {list}}}");
        let either =
            format!("{{type: [array, object], items: {item}, properties: {{name: {{}}}}}}");
        let any = "{type: array}";
        format!(
            "tools: {{t: {{command: [date], paths: [{paths}], input_schema: {{type: object, properties: {{list: {list}, nested: {nested}, either: {either}, any: {any}}}}}}}}}"
        )
    };
    assert_no_problems(
        tool,
        "
        list.path
        nested.path
        either.path
        either.name
        any.path
        ",
    );
    assert_refused(
        tool,
        "
        list.pth ⇒ list.pth ⇒ has no `list.pth`
        nested.path.x ⇒ nested.path.x ⇒ has no `nested.path.x`
        either.pth ⇒ either.pth ⇒ has no `either.pth`
        ",
    );
}

#[test]
fn an_open_schema_allows_any_placeholder() {
    let schema = |keywords: &str| {
        let command = r#"command: [cat, --, "{b.c?}"]"#;
        format!("tools:\n  t:\n    input_schema: {{type: object, {keywords}}}\n    {command}\n")
    };
    assert_no_problems(
        schema,
        r##"
        properties: {a: {}}, additionalProperties: true
        properties: {b: {}}
        properties: {b: {$ref: "#/properties/a"}, a: {type: object}}
        "##,
    );
    assert_warned(
        schema,
        r"
        allOf: [{properties: {b: {type: object}}}] ⇒ t ⇒ some APIs reject `allOf` at the top
        ",
    );
    assert_refused(
        schema,
        r"
        additionalProperties: false ⇒ {b.c?} ⇒ has no `b`
        properties: {b: {type: object, properties: {}}} ⇒ {b.c?} ⇒ `b` has no `c`
        ",
    );
}

/// Problems point at the placeholder in the source, even where YAML escapes or folds the text.
#[test]
fn problems_point_at_placeholders_in_every_yaml_style() {
    assert_refused(
        |style| file_with_tool(&format!("command: {style}")),
        r#"
        [cat, --, 'it''s {bad}'] ⇒ {bad} ⇒ has no `bad`
        [cat, --, "tab\t{bad}"] ⇒ {bad} ⇒ has no `bad`
        [cat, --, "\x7bbad}"] ⇒ "\x7bbad}" ⇒ has no `bad`
        ⏎ - cat ⏎ - -- ⏎ - | ⏎   first ⏎   {bad} ⇒ {bad} ⇒ has no `bad`
        ⏎ - cat ⏎ - -- ⏎ - >- ⏎   folded ⏎   {bad} ⇒ {bad} ⇒ has no `bad`
        ⏎ - cat ⏎ - -- ⏎ - plain ⏎   over lines {bad} ⇒ {bad} ⇒ has no `bad`
        "#,
    );
}
