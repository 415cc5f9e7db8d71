//! Schemas of inputs, and of inputs whose calls may run beside others.

use crate::{quiet, refused, tool, warned};

/// FAULTS 21: what looks at nothing would let every call run beside others.
#[test]
fn when_is_about_the_input() {
    let frame = |when: &str| tool(&format!("concurrency_safe: {{when: {when}}}"));
    refused(
        frame,
        r#"
        {a: {pattern: "^SELECT"}}                              ⇒ a         ⇒ `a` is no keyword
        {propertys: {a: {const: x}}}                           ⇒ propertys ⇒ no keyword
        {properties: {a: {patern: "^x"}}}                      ⇒ patern    ⇒ no keyword
        {anyOf: [{properties: {a: {const: x}}}, {requird: []}]} ⇒ requird  ⇒ no keyword
        {properties: {pth: {const: x}}, required: [pth]}       ⇒ pth       ⇒ the input has no `pth`
        {required: [pth]}                                      ⇒ required  ⇒ the input has no `pth`
        {not: {required: [pth]}}                               ⇒ required  ⇒ the input has no `pth`
        {properties: {a: {properties: {b: {}}}}}               ⇒ properties ⇒ about values of type object
        {pattern: "^SELECT"}                                   ⇒ pattern   ⇒ about values of type string, and the input
        {properties: {n: {pattern: "^1"}}}                     ⇒ pattern   ⇒ about values of type string, and `n`
        {properties: {a: {minimum: 1}}}                        ⇒ minimum   ⇒ about values of type number, and `a`
        {}                                                     ⇒ when      ⇒ looks at nothing
        true                                                   ⇒ when      ⇒ looks at nothing
        "#,
    );
    quiet(
        frame,
        r#"
        {properties: {a: {pattern: "^SELECT"}}, required: [a]}
        {properties: {n: {minimum: 1}, list: {maxItems: 3}}}
        {$comment: looks only, not: {required: [o]}, properties: {a: {enum: [x], description: y}}}
        {if: {required: [o]}, then: {properties: {o: {const: x}}}, else: false}
        "#,
    );
}

/// Unknown keywords are notes to JSON Schema; only one that is almost another is a mistake.
#[test]
fn almost_a_keyword() {
    let frame = |schema: &str| {
        format!("tools:\n  t:\n    input_schema: {{type: object, {schema}}}\n    command: [date]\n")
    };
    warned(
        frame,
        r"
        propertys: {a: {type: string}}             ⇒ propertys ⇒ checks nothing
        properties: {a: {type: string}}, requird: [a] ⇒ requird ⇒ checks nothing
        properties: {a: {minLenght: 1}}            ⇒ minLenght ⇒ checks nothing
        properties: {a: {maxlength: 1}}            ⇒ maxlength ⇒ checks nothing
        properties: {a: {typ: string}}             ⇒ typ       ⇒ checks nothing
        ",
    );
    quiet(
        frame,
        r"
        properties: {a: {nullable: true, x-order: 1, example: 1, enumNames: [a], propertyOrdering: [a]}}
        properties: {typ: {}, items: {default: {requird: 1}}}
        strict: true, optional: [a], markdownDescription: text, errorMessage: text
        ",
    );
}
