//! Input schemas, and the `when` schemas that decide which inputs are concurrency-safe.

use crate::tools_file::{
    assert_no_problems, assert_refused, assert_warned, file_with_lines, file_with_tool,
};

/// A `when` schema that checks nothing would make every call concurrency-safe.
#[test]
fn when_must_constrain_the_input() {
    let frame = |when: &str| file_with_tool(&format!("concurrency_safe: {{when: {when}}}"));
    assert_refused(
        frame,
        r#"
        {a: {pattern: "^SELECT"}}                              ⇒ a         ⇒ `a` isn't a JSON Schema keyword
        {propertys: {a: {const: x}}}                           ⇒ propertys ⇒ isn't a JSON Schema keyword
        {properties: {a: {patern: "^x"}}}                      ⇒ patern    ⇒ isn't a JSON Schema keyword
        {anyOf: [{properties: {a: {const: x}}}, {requird: []}]} ⇒ requird  ⇒ isn't a JSON Schema keyword
        {properties: {pth: {const: x}}, required: [pth]}       ⇒ pth       ⇒ the input has no `pth`
        {required: [pth]}                                      ⇒ required  ⇒ the input has no `pth`
        {not: {required: [pth]}}                               ⇒ required  ⇒ the input has no `pth`
        {properties: {a: {properties: {b: {}}}}}               ⇒ properties ⇒ applies to values of type object
        {pattern: "^SELECT"}                                   ⇒ pattern   ⇒ applies to values of type string, and the input
        {properties: {n: {pattern: "^1"}}}                     ⇒ pattern   ⇒ applies to values of type string, and `n`
        {properties: {a: {minimum: 1}}}                        ⇒ minimum   ⇒ applies to values of type number, and `a`
        {}                                                     ⇒ when      ⇒ checks nothing
        true                                                   ⇒ when      ⇒ checks nothing
        "#,
    );
    assert_no_problems(
        frame,
        r#"
        {properties: {a: {pattern: "^SELECT"}}, required: [a]}
        {properties: {n: {minimum: 1}, list: {maxItems: 3}}}
        {$comment: read-only, not: {required: [o]}, properties: {a: {enum: [x], description: y}}}
        {if: {required: [o]}, then: {properties: {o: {const: x}}}, else: false}
        "#,
    );
}

/// Of the inputs of many tools, it is known that they are objects.
#[test]
fn the_when_of_defaults_and_rules_is_about_objects() {
    for frame in [
        |when: &str| file_with_lines(&format!("defaults: {{approve: {{when: {when}}}}}")),
        |when: &str| file_with_lines(&format!("rules: [{{tools: t, approve: {{when: {when}}}}}]")),
    ] {
        assert_refused(
            frame,
            r#"
            {minLength: 3}               ⇒ minLength ⇒ applies to values of type string, and the input
            {anyOf: [{pattern: "^SEL"}]} ⇒ pattern   ⇒ applies to values of type string, and the input
            "#,
        );
        assert_no_problems(
            frame,
            "{properties: {amount: {minimum: 5}}, required: [amount]}",
        );
    }
}

/// JSON Schema allows unknown keywords as annotations; only one that closely resembles a known keyword is reported.
#[test]
fn misspelled_keywords_are_warned_about() {
    let frame = |schema: &str| {
        format!("tools:\n  t:\n    input_schema: {{type: object, {schema}}}\n    command: [date]\n")
    };
    assert_warned(
        frame,
        r"
        propertys: {a: {type: string}}             ⇒ propertys ⇒ checks nothing
        properties: {a: {type: string}}, requird: [a] ⇒ requird ⇒ checks nothing
        properties: {a: {minLenght: 1}}            ⇒ minLenght ⇒ checks nothing
        properties: {a: {maxlength: 1}}            ⇒ maxlength ⇒ checks nothing
        properties: {a: {typ: string}}             ⇒ typ       ⇒ checks nothing
        ",
    );
    assert_no_problems(
        frame,
        r"
        properties: {a: {nullable: true, x-order: 1, example: 1, enumNames: [a], propertyOrdering: [a]}}
        properties: {typ: {}, items: {default: {requird: 1}}}
        strict: true, optional: [a], markdownDescription: text, errorMessage: text
        ",
    );
}

/// A default is filled in where the value is missing, so it must be a value that the tool accepts.
#[test]
fn a_default_that_its_schema_rejects_is_warned_about() {
    let frame = |properties: &str| {
        format!(
            "tools:\n  t:\n    input_schema: {{type: object, properties: {{{properties}}}, required: [z]}}\n    command: [a, \"n={{n}}\"]\n"
        )
    };
    assert_warned(
        frame,
        r"
        z: {}, n: {type: integer, default: five}                 ⇒ five    ⇒ must be integer
        z: {}, n: {minimum: 1, type: integer, default: 0}        ⇒ 0       ⇒ must be at least 1
        z: {}, n: {type: array, items: {type: integer}, default: [x]} ⇒ default ⇒ /0 must be integer
        z: {properties: {deep: {type: string, default: 1}}}, n: {default: x} ⇒ 1 ⇒ must be string
        ",
    );
    assert_no_problems(
        frame,
        r"
        z: {}, n: {type: integer, default: 5}
        z: {default: 1}, n: {enum: [x, y], default: x}
        ",
    );
}
