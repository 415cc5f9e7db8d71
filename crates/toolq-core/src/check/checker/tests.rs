//! Turns and what is decided of their calls.

use serde_json::json;

use super::*;

use crate::testing::{tool_with_schema, tools_in};
use crate::types::{DecidedBy, Form, Rule};

fn checker() -> Checker {
    let schema = json!({"properties": {"n": {"type": "integer"}}, "required": ["n"], "additionalProperties": false});
    let when = json!({"properties": {"n": {"maximum": 9}}});
    let rule = Rule {
        glob: "r*".to_owned(),
        safe: true,
    };
    let all = [
        ("count", Safety::Default),
        ("bash", Safety::When(when)),
        ("read", Safety::Rule(rule)),
        ("look", Safety::Effect(true)),
        ("save", Safety::Declared(false)),
    ];
    let all = all.map(|(name, safety)| Tool {
        safety,
        ..tool_with_schema(name, schema.clone())
    });
    Checker::new(tools_in(all.into(), "/".into()))
}

fn turn(calls: &[(&str, &str, &str)], cut_off: bool) -> Turn {
    let call = |(position, (id, name, input)): (usize, &(&str, &str, &str))| Call {
        turn: 0,
        position,
        id: (*id).to_owned(),
        name: (*name).to_owned(),
        input: Input::parse(input),
        within: None,
    };
    Turn {
        number: 0,
        calls: calls.iter().enumerate().map(call).collect(),
        answered: 0,
        form: Form::Blocks,
        cut_off,
        started: Vec::new(),
    }
}

/// Each verdict in a line.
fn lines(checked: &[Checked]) -> Vec<String> {
    let line = |checked: &Checked| match &checked.verdict {
        Verdict::Accepted(accepted) => {
            format!(
                "{} {} by {}",
                accepted.input.text(),
                accepted.safe,
                accepted.decided_by
            )
        }
        Verdict::Rejected(rejection) => {
            let details = rejection
                .details
                .iter()
                .map(|detail| format!(" {}: {}", detail.path, detail.message));
            format!(
                "{}{}",
                rejection.reason.name(),
                details.collect::<Vec<_>>().join(";")
            )
        }
    };
    checked.iter().map(line).collect()
}

/// FAULTS 5, 6, 8, 9, 15: every call has a verdict, and one that is rejected touches no other.
#[test]
fn every_call_has_its_verdict() {
    let calls = [
        ("a", "count", r#"{"n":1}"#),
        ("b", "Count", "{}"),
        ("c", "count", r#"{"n":"x","m":1}"#),
        ("d", "count", "[1]"),
        ("e", "count", r#"{"n":1,"n":2}"#),
        ("f", "count", r#"{"n":1}"#),
        ("f", "count", r#"{"n":2}"#),
        ("g", "count", ""),
        ("i", "", "{}"),
        ("h", "count", r#"{"n":3}"#),
    ];
    assert_eq!(
        lines(&checker().turn(turn(&calls, true))),
        [
            r#"{"n":1} false by default"#,
            "unknown_tool : no tool is called `Count`; did you mean `count`?; : known: count, bash, read, look, save",
            "invalid_input /n: must be integer, not string; /m: is not allowed; known: n",
            "invalid_arguments : the input is an array; an object is needed",
            "invalid_input : the key \"n\" stands twice in one object",
            "duplicate_id : another call of this turn has the same id",
            "duplicate_id : another call of this turn has the same id",
            "invalid_arguments : the input is no JSON: EOF while parsing a value at line 1 column 0",
            "unknown_tool : the call has no name; : known: count, bash, read, look, save",
            "truncated : the answer ended at its token limit inside this call",
        ]
    );
}

#[test]
fn the_first_that_speaks_decides_over_what_is_executed() {
    let calls = [
        ("a", "bash", r#"{"n":"5"}"#),
        ("b", "bash", r#"{"n":10}"#),
        ("c", "read", r#"{"n":1}"#),
        ("d", "look", r#"{"n":1}"#),
        ("e", "save", r#"{"n":1}"#),
    ];
    let checked = checker().turn(turn(&calls, false));
    assert_eq!(
        lines(&checked),
        [
            r#"{"n":5} true by concurrency_safe.when"#,
            r#"{"n":10} false by concurrency_safe.when"#,
            r#"{"n":1} true by rule r*"#,
            r#"{"n":1} true by effect"#,
            r#"{"n":1} false by concurrency_safe"#,
        ]
    );
    let Verdict::Accepted(accepted) = &checked[0].verdict else {
        panic!()
    };
    assert_eq!(
        accepted.before_coercion.as_ref().map(Input::text),
        Some(r#"{"n":"5"}"#)
    );
    assert_eq!(accepted.decided_by, DecidedBy::When);
}

/// FAULTS 16: time grows with the calls, not with their square.
#[test]
fn a_hundred_thousand_calls() {
    let input = Input::parse(r#"{"n":1}"#);
    let call = |position: usize| Call {
        turn: 0,
        position,
        id: position.to_string(),
        name: "count".to_owned(),
        input: input.clone(),
        within: None,
    };
    let calls = (0..100_000).map(call).collect();
    let turn = Turn {
        calls,
        ..turn(&[], false)
    };
    let checked = checker().turn(turn);
    assert!(
        checked
            .iter()
            .all(|checked| matches!(checked.verdict, Verdict::Accepted(_)))
    );
}
