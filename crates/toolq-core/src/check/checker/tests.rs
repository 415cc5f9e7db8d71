//! Turns, and the verdicts of their calls.

use serde_json::json;

use super::*;

use crate::json::Input;
use crate::linear_time::assert_linear_time;
use crate::testing::{tool_with_backing, tool_with_schema, tools_with_root};
use crate::types::{AnswerForm, CallKind, SafetyPolicy, SafetyRule, SafetySource};

fn checker() -> CallChecker {
    let schema = json!({"properties": {"n": {"type": "integer"}}, "required": ["n"], "additionalProperties": false});
    let when = json!({"properties": {"n": {"maximum": 9}}});
    let rule = SafetyRule {
        glob: "r*".into(),
        safe: true,
    };
    let all = [
        ("count", SafetyPolicy::Default),
        ("bash", SafetyPolicy::When(when)),
        ("read", SafetyPolicy::Rule(rule)),
        ("look", SafetyPolicy::Effect(true)),
        ("save", SafetyPolicy::Declared(false)),
    ];
    let all = all.map(|(name, safety)| Tool {
        safety,
        ..tool_with_schema(name, schema.clone())
    });
    CallChecker::new(tools_with_root(all.into(), "/".into()))
}

fn turn_of(calls: &[(&str, &str, &str)], ending: ResponseEnding) -> Turn {
    let call = |(position, (id, name, input)): (usize, &(&str, &str, &str))| Call {
        turn: 0,
        position,
        id: (*id).to_owned(),
        name: (*name).into(),
        input: Input::parse(input).map_err(Box::new),
        parent: None,
        has_number_id: false,
        kind: CallKind::Function,
    };
    let calls = calls.iter().enumerate().map(call).collect();
    Turn {
        ending,
        ..Turn::of_calls(0, calls, AnswerForm::Blocks)
    }
}

/// Renders one line per verdict.
fn verdict_lines(checked: &[CheckedCall]) -> Vec<String> {
    let line = |checked: &CheckedCall| match &checked.verdict {
        Verdict::Accepted(accepted) => {
            format!(
                "{} {} by {}",
                accepted.input.text(),
                accepted.safe,
                accepted.safety_source
            )
        }
        Verdict::Rejected(rejection) => {
            let details = rejection
                .details
                .iter()
                .map(|detail| format!(" {}: {}", detail.path, detail.message));
            format!(
                "{}{}",
                rejection.reason.status(),
                details.collect::<Vec<_>>().join(";")
            )
        }
    };
    checked.iter().map(line).collect()
}

/// A rejected call doesn't affect the others.
#[test]
fn every_call_gets_a_verdict() {
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
        verdict_lines(&checker().check_turn(turn_of(&calls, ResponseEnding::CutOff))),
        [
            r#"{"n":1} false by default"#,
            "unknown_tool : no tool named `Count`; did you mean `count`?; : known: count, bash, read, look, save",
            "invalid_input /n: must be integer, not string; /m: is not allowed; known: n",
            "invalid_arguments : the input is an array; it must be an object",
            "invalid_input : the key \"n\" appears twice in one object",
            r#"{"n":1} false by default"#,
            r#"{"n":2} false by default"#,
            "invalid_arguments : the input is not valid JSON: EOF while parsing a value at line 1 column 0",
            "unknown_tool : the call has no name; : known: count, bash, read, look, save",
            "truncated : the response hit its token limit in the middle of this call",
        ]
    );
}

/// One id twice is one call if tool and input are the same, too, and two calls otherwise.
#[test]
fn a_call_that_was_sent_twice_repeats_the_first() {
    let calls = [
        ("f", "count", r#"{"n":1}"#),
        ("f", "count", r#"{"n":2}"#),
        ("f", "save", r#"{"n":1}"#),
        ("g", "count", r#"{"n":1}"#),
        ("f", "count", r#"{ "\u006e": 1.0 }"#),
        ("f", "count", r#"{"n":2}"#),
    ];
    let checked = checker().check_turn(turn_of(&calls, ResponseEnding::Complete));
    let repeats: Vec<Option<usize>> = checked.iter().map(|call| call.repeats).collect();
    assert_eq!(repeats, [None, None, None, None, Some(0), Some(1)]);
    // A call that was cut off, or of which it isn't certain what was sent, isn't known to be the same.
    let checked = checker().check_turn(turn_of(&calls, ResponseEnding::CutOff));
    assert_eq!(checked[5].repeats, None);
    let broken = Turn {
        broken_from: Some(4),
        ..turn_of(&calls, ResponseEnding::Complete)
    };
    let checked = checker().check_turn(broken);
    assert_eq!(checked[4].repeats, None);
    assert!(checked[4].verdict.accepted().is_none() && checked[3].verdict.accepted().is_some());
}

/// What is wrong with an input that didn't arrive whole isn't the model's fault.
#[test]
fn a_call_of_a_broken_message_is_told_so_and_nothing_about_its_input() {
    let calls = [
        ("a", "count", "{}"),
        ("b", "count", r#"{"n":"x"}"#),
        ("c", "count", "{"),
        ("d", "nothing", "{"),
        ("e", "", "{}"),
    ];
    let mut turn = turn_of(&calls, ResponseEnding::Complete);
    turn.calls[4].input = Err(Box::new(InvalidInput::MissingName));
    turn.broken_from = Some(0);
    let reasons = checker()
        .check_turn(turn)
        .into_iter()
        .map(|checked| match checked.verdict {
            Verdict::Rejected(rejection) => rejection.reason,
            Verdict::Accepted(_) => panic!("{} runs", checked.call.id),
        });
    let broken = RejectionReason::StreamAborted;
    let unknown = RejectionReason::UnknownTool;
    assert_eq!(
        reasons.collect::<Vec<_>>(),
        [broken, broken, broken, unknown, broken]
    );
}

#[test]
fn the_first_declaration_decides_the_safety_of_the_coerced_input() {
    let calls = [
        ("a", "bash", r#"{"n":"5"}"#),
        ("b", "bash", r#"{"n":10}"#),
        ("c", "read", r#"{"n":1}"#),
        ("d", "look", r#"{"n":1}"#),
        ("e", "save", r#"{"n":1}"#),
    ];
    let checked = checker().check_turn(turn_of(&calls, ResponseEnding::Complete));
    assert_eq!(
        verdict_lines(&checked),
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
    assert_eq!(accepted.safety_source, SafetySource::When);
}

#[test]
fn defaults_are_filled_in_before_validation_and_coercion() {
    let schema = json!({
        "properties": {
            "n": {"type": "integer", "default": 5},
            "more": {"type": "object", "properties": {"x": {"default": 1}}, "required": ["x"]},
            "unit": {"type": "string"},
        },
        "required": ["n"],
        "dependentRequired": {"unit": ["more"]},
    });
    let strict = Tool {
        name: "strict".to_owned(),
        coerce: false,
        ..tool_with_schema("strict", schema.clone())
    };
    let all = vec![tool_with_schema("seq", schema), strict];
    let checker = CallChecker::new(tools_with_root(all, "/".into()));
    let calls = [
        ("a", "seq", "{}"),
        ("b", "seq", r#"{"n":"3","more":"{}"}"#),
        ("c", "strict", "{}"),
        ("d", "seq", r#"{"unit":"m"}"#),
        ("e", "seq", r#"{"n":1}"#),
    ];
    let checked = checker.check_turn(turn_of(&calls, ResponseEnding::Complete));
    let inputs: Vec<_> = checked
        .iter()
        .map(|checked| match &checked.verdict {
            Verdict::Accepted(accepted) => (
                accepted.input.text().to_owned(),
                accepted.before_coercion.as_ref().map(Input::text),
            ),
            Verdict::Rejected(rejection) => (format!("{:?}", rejection.details), None),
        })
        .collect();
    assert_eq!(inputs[0], (r#"{"n":5}"#.to_owned(), Some("{}")));
    assert_eq!(
        inputs[1],
        (
            r#"{"n":3,"more":{"x":1}}"#.to_owned(),
            Some(r#"{"n":"3","more":"{}"}"#)
        )
    );
    assert_eq!(inputs[2], (r#"{"n":5}"#.to_owned(), Some("{}")));
    assert!(inputs[3].0.contains("more"), "{}", inputs[3].0);
    assert_eq!(inputs[4], (r#"{"n":1}"#.to_owned(), None));
}

/// Whether each has an id of its own, or all have the same.
#[test]
fn calls_are_checked_in_linear_time() {
    let checker = checker();
    let check = |count: usize, id: fn(usize) -> String| {
        let call = |position: usize| Call {
            turn: 0,
            position,
            id: id(position),
            name: "count".into(),
            input: Input::parse(&format!(r#"{{"n":{position}}}"#)).map_err(Box::new),
            parent: None,
            has_number_id: false,
            kind: CallKind::Function,
        };
        let calls = (0..count).map(call).collect();
        let turn = Turn {
            calls,
            ..turn_of(&[], ResponseEnding::Complete)
        };
        let checked = checker.check_turn(turn);
        assert!(
            checked
                .iter()
                .all(|checked| matches!(checked.verdict, Verdict::Accepted(_)))
        );
        assert!(checked.iter().all(|checked| checked.repeats.is_none()));
    };
    assert_linear_time("a turn", 2_000, |count| check(count, |n| n.to_string()));
    assert_linear_time("one id", 2_000, |count| check(count, |_| "a".to_owned()));
}

/// Positions count from the beginning of the turn, even if the input has the first results already.
#[test]
fn the_last_call_of_a_turn_that_was_cut_off_is_rejected_behind_answered_calls() {
    let calls = [("a", "count", r#"{"n":1}"#), ("b", "count", r#"{"n":2}"#)];
    let mut turn = turn_of(&calls, ResponseEnding::CutOff);
    turn.answered_count = 2;
    for call in &mut turn.calls {
        call.position += 2;
    }
    let checked = checker().check_turn(turn);
    let is_rejected = |checked: &CheckedCall| matches!(checked.verdict, Verdict::Rejected(_));
    let rejected: Vec<bool> = checked.iter().map(is_rejected).collect();
    assert_eq!(rejected, [false, true]);
}

#[test]
fn a_tool_is_found_by_its_exact_name() {
    let checker = checker();
    let found = |name: &str| checker.tool(name).map(|tool| tool.name.clone());
    assert_eq!(found("bash").as_deref(), Some("bash"));
    assert_eq!(found("Bash"), None);
}

/// A default that would make a valid input invalid is left out; the others are filled in.
#[test]
fn an_input_counts_as_changed_only_if_a_valid_default_was_filled_in() {
    let invalid = json!({"properties": {"n": {"type": "integer", "default": "x"}}});
    let mixed = json!({
        "properties": {"n": {"type": "integer", "default": "x"}, "m": {"default": 1}}
    });
    let all = vec![
        tool_with_schema("invalid", invalid),
        tool_with_schema("mixed", mixed),
    ];
    let checker = CallChecker::new(tools_with_root(all, "/".into()));
    let calls = [("a", "invalid", "{}"), ("b", "mixed", "{}")];
    let checked = checker.check_turn(turn_of(&calls, ResponseEnding::Complete));
    let inputs = checked.iter().map(|checked| match &checked.verdict {
        Verdict::Accepted(accepted) => (
            accepted.input.text(),
            accepted.before_coercion.as_ref().map(Input::text),
        ),
        Verdict::Rejected(rejection) => panic!("{:?}", rejection.details),
    });
    assert_eq!(
        inputs.collect::<Vec<_>>(),
        [("{}", None), (r#"{"m":1}"#, Some("{}"))]
    );
}

/// The agent's settings apply to a task, not those of `new_task`, which is only how the model reaches it.
#[test]
fn a_task_is_a_call_of_the_agent_that_it_names() {
    let agent = |name: &str, safe: bool| {
        Arc::new(Tool {
            safety: SafetyPolicy::Declared(safe),
            ..tool_with_schema(name, json!({}))
        })
    };
    let new_task = Tool {
        name: "new_task".to_owned(),
        ..tool_with_backing(Backing::Builtin(BuiltinTool::NewTask(vec![
            agent("writer", false),
            agent("reader", true),
        ])))
    };
    let checker = CallChecker::new(tools_with_root(vec![new_task], "/".into()));
    let calls = [
        ("a", "new_task", r#"{"agent":"writer"}"#),
        ("b", "new_task", r#"{"agent":"reader"}"#),
        ("c", "new_task", r#"{"agent":"nobody"}"#),
    ];
    let checked = checker.check_turn(turn_of(&calls, ResponseEnding::Complete));
    let decided = checked.iter().map(|checked| match &checked.verdict {
        Verdict::Accepted(accepted) => (accepted.tool.name.as_str(), accepted.safe),
        Verdict::Rejected(rejection) => panic!("{:?}", rejection.details),
    });
    assert_eq!(
        decided.collect::<Vec<_>>(),
        [("writer", false), ("reader", true), ("new_task", false)]
    );
}
