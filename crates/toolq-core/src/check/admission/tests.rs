use std::path::PathBuf;

use proptest::prelude::*;
use serde_json::json;

use super::*;

use crate::json::Input;
use crate::testing::{tool_with_schema, tools_in};
use crate::types::{Form, Tool, Turn};

fn checker() -> Checker {
    let object = json!({"type": "object", "additionalProperties": false});
    let named = |name, effect| Tool {
        effect,
        ..tool_with_schema(name, object.clone())
    };
    let all = [
        named("read", Effect::Read),
        named("again", Effect::Idempotent),
        named("write", Effect::Write),
    ];
    Checker::new(tools_in(all.into(), PathBuf::from("/")))
}

fn call(position: usize, name: &str, id: &str, input: &str) -> Call {
    Call {
        turn: 0,
        position,
        id: id.to_owned(),
        name: name.to_owned(),
        input: Input::parse(input),
        within: None,
    }
}

/// `r0` for a call of id 0 that may run, `r0!unknown_tool` for one that may not, `-0` for one that is revoked.
fn word(arrival: &Arrival) -> String {
    match arrival {
        Arrival::Call(checked) => verdict(checked),
        Arrival::Revoked {
            position,
            rejection,
        } => format!("-{position}!{}", rejection.reason.name()),
        Arrival::Over(_) => "broke".to_owned(),
        Arrival::Part { .. } => "part".to_owned(),
    }
}

fn verdict(checked: &Checked) -> String {
    let Call { name, id, .. } = &checked.call;
    match &checked.verdict {
        Verdict::Accepted(_) => format!("{}{id}", &name[..1]),
        Verdict::Rejected(rejection) => format!("{}{id}!{}", &name[..1], rejection.reason.name()),
    }
}

fn words(arriving: &mut Arriving) -> String {
    let words: Vec<String> = arriving.take().map(|arrival| word(&arrival)).collect();
    words.join(" ")
}

/// What is passed on after each step: `r0` is a whole call of that id, `x0` one whose input is no JSON; `.` and `~` end the
/// message, `~` in the middle; `/` is its break.
fn steps(story: &str) -> Vec<String> {
    let checker = checker();
    let mut arriving = Arriving::new(&checker);
    let mut position = 0;
    let mut passed = Vec::new();
    for step in story.split(' ') {
        match step.split_at(1) {
            (".", _) => arriving.closed(false),
            ("~", _) => arriving.closed(true),
            ("/", "") => arriving.broke_off(Vec::new()),
            ("/", id) => {
                arriving.begun();
                arriving.broke_off(vec![call(position, "read", id, "{")]);
            }
            (kind, id) => {
                let name = ["read", "again", "write", "unknown"]
                    .into_iter()
                    .find(|name| name.starts_with(kind));
                arriving.begun();
                let input = if name.is_some() { "{}" } else { "{" };
                arriving.whole(call(position, name.unwrap_or("read"), id, input));
                position += 1;
            }
        }
        passed.push(words(&mut arriving));
    }
    passed
}

#[test]
fn a_call_that_writes_waits_for_the_end() {
    assert_eq!(steps("r0 a1 w2 r3 ."), ["r0", "a1", "", "", "w2 r3"]);
    assert_eq!(steps("w0 ~"), ["", "w0!truncated"]);
    assert_eq!(
        steps("r0 w1 r2 /3"),
        ["r0", "", "", "broke w1 r2 r3!truncated"]
    );
}

/// What the end of the message may say otherwise is not said before.
#[test]
fn a_call_that_may_not_run_waits_for_the_next() {
    assert_eq!(steps("u0 r1 ."), ["", "u0!unknown_tool r1", ""]);
    assert_eq!(steps("x0 ~"), ["", "r0!truncated"]);
    assert_eq!(steps("x0 ."), ["", "r0!invalid_arguments"]);
}

#[test]
fn what_was_let_go_can_be_revoked() {
    assert_eq!(steps("r0 ~"), ["r0", "-0!truncated"]);
    assert_eq!(
        steps("r0 r0 ~"),
        ["r0", "-0!duplicate_id", "r0!duplicate_id"]
    );
    assert_eq!(steps("w0 r0 ~"), ["", "w0!duplicate_id", "r0!duplicate_id"]);
}

proptest! {
    /// Where nothing starts before the end, the verdicts are those of the whole message; and no call that writes, and
    /// nothing behind one, is let go before it.
    #[test]
    fn streamed_and_whole_are_judged_alike(
        asked in prop::collection::vec(("[rawux]", 0..6_u8), 0..8),
        cut_off in any::<bool>(),
    ) {
        let checker = checker();
        let calls: Vec<Call> = asked.iter().enumerate().map(|(position, (kind, id))| {
            let name = match kind.as_str() { "r" | "x" => "read", "a" => "again", "w" => "write", _ => "unknown" };
            call(position, name, &id.to_string(), if kind == "x" { "{" } else { "{}" })
        }).collect();
        let mut arriving = Arriving::new(&checker);
        for call in calls.clone() {
            arriving.begun();
            arriving.whole(call);
        }
        let early = arriving.ready.len();
        arriving.closed(cut_off);
        let mut judged: Vec<Checked> = Vec::new();
        for (at, arrival) in arriving.take().enumerate() {
            match arrival {
                Arrival::Call(checked) => {
                    let writes = |checked: &Checked| checked.call.name == "write" && matches!(checked.verdict, Verdict::Accepted(_));
                    prop_assert!(at >= early || !writes(&checked));
                    prop_assert_eq!(checked.call.position, judged.len());
                    judged.push(*checked);
                }
                Arrival::Revoked { position, rejection } => judged[position].verdict = Verdict::Rejected(rejection),
                other => prop_assert!(false, "{:?}", other),
            }
        }
        let turn = Turn { number: 0, calls, answered: 0, form: Form::Message, cut_off, started: Vec::new() };
        let whole: Vec<String> = checker.turn(turn).iter().map(verdict).collect();
        prop_assert_eq!(judged.iter().map(verdict).collect::<Vec<_>>(), whole);
    }
}
