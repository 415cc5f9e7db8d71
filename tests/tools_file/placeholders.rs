//! Placeholders against the schema, and the places of them.

use crate::{quiet, refused, tool, warned};

/// FAULTS 37: a value is one argument, or an array's items are one each.
#[test]
fn placeholders_are_known_to_the_schema() {
    refused(
        tool,
        r#"
        command: [cat, --, "{pth}"] ⇒ {pth} ⇒ has no `pth`
        command: [jq, '.x | {b}'] ⇒ {b} ⇒ has no `b`
        command: [cat, --, "é {a} {a.b}"] ⇒ {a.b} ⇒ `a` has no `b`
        command: [cat, --, "x{list?...}"] ⇒ {list?...} ⇒ not an argument by itself
        command: [cat, --, "x{list...}"] ⇒ {list...} ⇒ not an argument by itself
        command: [cat, --, "{a...}"] ⇒ {a...} ⇒ no array
        command: {argv: [cat], stdin: "{list?...}"} ⇒ {list?...} ⇒ not an argument by itself
        paths: [pth] ⇒ pth ⇒ has no `pth`
        paths: ["a b"] ⇒ "a b" ⇒ no name of an input
        status: {doing: "reading {pth}"} ⇒ {pth} ⇒ has no `pth`
        "#,
    );
    warned(
        tool,
        r#"
        command: [cat, --, "{o}"] ⇒ {o} ⇒ not required
        command: [cat, --, "{list...}"] ⇒ {list...} ⇒ not required
        command: [cat, --, "{{a}}"] ⇒ {{a}} ⇒ is the text `{a}}`
        command: [cat, --, "${HOME}"] ⇒ ${HOME} ⇒ stays text
        "#,
    );
    quiet(
        tool,
        r#"
        command: [cat, --, "{o?}", "{list?...}", "{{o}", "$${HOME}", "{1} {a,b}"]
        status: {wait: "waiting for {o}", doing: "{a}"}
        paths: [a, o]
        "#,
    );
}

#[test]
fn an_open_schema_may_have_anything() {
    let schema = |keywords: &str| {
        let command = r#"command: [cat, --, "{b.c?}"]"#;
        format!("tools:\n  t:\n    input_schema: {{type: object, {keywords}}}\n    {command}\n")
    };
    quiet(
        schema,
        r##"
        properties: {a: {}}, additionalProperties: true
        properties: {b: {}}
        properties: {b: {$ref: "#/properties/a"}, a: {type: object}}
        allOf: [{properties: {b: {type: object}}}]
        "##,
    );
    refused(
        schema,
        r"
        additionalProperties: false ⇒ {b.c?} ⇒ has no `b`
        properties: {b: {type: object, properties: {}}} ⇒ {b.c?} ⇒ `b` has no `c`
        ",
    );
}

/// The caret stands under the placeholder also where YAML writes a text otherwise than it is.
#[test]
fn places_hold_in_every_style_of_text() {
    refused(
        |style| tool(&format!("command: {style}")),
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
