use std::path::PathBuf;

use proptest::prelude::*;
use serde_json::json;

use super::*;

use crate::json::Input;
use crate::testing::{tool_with_schema, tools_with_root};
use crate::types::{AnswerForm, CallKind, Tool, Turn};

fn checker() -> CallChecker {
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
    CallChecker::new(tools_with_root(all.into(), PathBuf::from("/")))
}

fn call(position: usize, name: &str, id: &str, input: &str) -> Call {
    Call {
        turn: 0,
        position,
        id: id.to_owned(),
        name: name.into(),
        input: Input::parse(input).map_err(Box::new),
        parent: None,
        has_number_id: false,
        kind: CallKind::Function,
    }
}

/// `r0` for an accepted call with id 0, `r0!unknown_tool` for a rejected one, `-0!truncated` for a revoked one.
fn arrival_label(arrival: &TurnArrival) -> String {
    match arrival {
        TurnArrival::Call(checked) => verdict_label(checked),
        TurnArrival::Revoked {
            position,
            rejection,
        } => format!("-{position}!{}", rejection.reason.status()),
        TurnArrival::RestSkipped(_) => "broke".to_owned(),
    }
}

fn verdict_label(checked: &CheckedCall) -> String {
    let Call { name, id, .. } = &checked.call;
    match &checked.verdict {
        Verdict::Accepted(_) => format!("{}{id}", &name[..1]),
        Verdict::Rejected(rejection) => format!("{}{id}!{}", &name[..1], rejection.reason.status()),
    }
}

fn drain_labels(admission: &mut StreamAdmission) -> String {
    let words: Vec<String> = admission
        .drain_ready()
        .map(|arrival| arrival_label(&arrival))
        .collect();
    words.join(" ")
}

/// Runs a script and returns what is released after each step. `r0` is a complete call with id 0, `x0` one whose input
/// isn't JSON; `.` ends the message, `~` ends it cut off, `!` refused; `/` breaks it off, and `/3` does so inside a call
/// with id 3; `#1` says that it didn't arrive whole from the call at position 1 on.
fn run_script(script: &str) -> Vec<String> {
    let checker = checker();
    let mut admission = StreamAdmission::new(&checker);
    let mut position = 0;
    let mut released = Vec::new();
    for step in script.split(' ') {
        match step.split_at(1) {
            (".", _) => admission.close(ResponseEnding::Complete),
            ("~", _) => admission.close(ResponseEnding::CutOff),
            ("!", _) => admission.close(ResponseEnding::Refused),
            ("#", first) => admission.break_from(first.parse().unwrap()),
            ("/", "") => admission.abort(Vec::new()),
            ("/", id) => {
                admission.begin();
                admission.abort(vec![call(position, "read", id, "{")]);
            }
            (kind, id) => {
                let name = ["read", "again", "write", "unknown"]
                    .into_iter()
                    .find(|name| name.starts_with(kind));
                admission.begin();
                let input = if name.is_some() { "{}" } else { "{" };
                admission.complete(call(position, name.unwrap_or("read"), id, input));
                position += 1;
            }
        }
        released.push(drain_labels(&mut admission));
    }
    released
}

#[test]
fn a_write_call_waits_for_the_end() {
    assert_eq!(run_script("r0 a1 w2 r3 ."), ["r0", "a1", "", "", "w2 r3"]);
    assert_eq!(run_script("w0 ~"), ["", "w0!truncated"]);
    assert_eq!(
        run_script("r0 w1 r2 /3"),
        ["r0", "", "", "broke w1 r2 r3!truncated"]
    );
}

/// The end of the message may change the reason, so it isn't reported earlier.
#[test]
fn a_rejected_call_waits_for_the_next() {
    assert_eq!(run_script("u0 r1 ."), ["", "u0!unknown_tool r1", ""]);
    assert_eq!(run_script("x0 ~"), ["", "r0!truncated"]);
    assert_eq!(run_script("x0 ."), ["", "r0!invalid_arguments"]);
}

/// Also of the calls that were released before.
#[test]
fn no_call_of_a_refused_message_runs() {
    assert_eq!(
        run_script("r0 w1 u2 !"),
        [
            "r0",
            "",
            "",
            "-0!response_refused w1!response_refused u2!unknown_tool"
        ]
    );
}

#[test]
fn a_released_call_can_be_revoked() {
    assert_eq!(run_script("r0 ~"), ["r0", "-0!truncated"]);
    assert_eq!(run_script("r0 r1 ~"), ["r0", "r1", "-1!truncated"]);
}

/// Neither the call of which it isn't certain what was sent, nor any after it.
#[test]
fn what_did_not_arrive_whole_does_not_run() {
    assert_eq!(
        run_script("r0 w1 r2 #1 r3 u4 ."),
        [
            "r0",
            "",
            "",
            "w1!truncated",
            "r2!truncated",
            "r3!truncated",
            "u4!unknown_tool"
        ]
    );
    assert_eq!(
        run_script("r0 r1 #0 r2 ."),
        ["r0", "r1", "-0!truncated -1!truncated", "", "r2!truncated"]
    );
}

/// A call that is sent twice runs once, and calls of their own that share an id both run.
#[test]
fn a_call_that_is_sent_again_repeats_the_first() {
    let checker = checker();
    let mut admission = StreamAdmission::new(&checker);
    for (position, name) in ["read", "write", "read"].into_iter().enumerate() {
        admission.begin();
        admission.complete(call(position, name, "0", "{}"));
    }
    admission.close(ResponseEnding::Complete);
    let repeats = admission.drain_ready().map(|arrival| match arrival {
        TurnArrival::Call(checked) => checked.repeats,
        other => panic!("{other:?}"),
    });
    assert_eq!(repeats.collect::<Vec<_>>(), [None, None, Some(0)]);
}

proptest! {
    /// If no call starts before the end, the verdicts match those of checking the whole message; and no `write` call is
    /// released before the end.
    #[test]
    fn streamed_and_whole_messages_get_the_same_verdicts(
        specs in prop::collection::vec(("[rawux]", 0..6_u8), 0..8),
        ending in prop::sample::select(vec![ResponseEnding::Complete, ResponseEnding::CutOff, ResponseEnding::Refused]),
    ) {
        let checker = checker();
        let calls: Vec<Call> = specs.iter().enumerate().map(|(position, (kind, id))| {
            let name = match kind.as_str() { "r" | "x" => "read", "a" => "again", "w" => "write", _ => "unknown" };
            call(position, name, &id.to_string(), if kind == "x" { "{" } else { "{}" })
        }).collect();
        let mut arriving = StreamAdmission::new(&checker);
        for call in calls.clone() {
            arriving.begin();
            arriving.complete(call);
        }
        let early = arriving.ready.len();
        arriving.close(ending);
        let mut judged: Vec<CheckedCall> = Vec::new();
        for (at, arrival) in arriving.drain_ready().enumerate() {
            match arrival {
                TurnArrival::Call(checked) => {
                    let writes = |checked: &CheckedCall| &*checked.call.name == "write" && matches!(checked.verdict, Verdict::Accepted(_));
                    prop_assert!(at >= early || !writes(&checked));
                    prop_assert_eq!(checked.call.position, judged.len());
                    judged.push(*checked);
                }
                // A call that was rejected keeps its own reason.
                TurnArrival::Revoked { position, rejection } => if rejection != rejection::response_refused() || matches!(judged[position].verdict, Verdict::Accepted(_)) {
                    judged[position].verdict = Verdict::rejected(rejection);
                },
                other @ TurnArrival::RestSkipped(_) => prop_assert!(false, "{:?}", other),
            }
        }
        let turn = Turn { ending, ..Turn::of_calls(0, calls, AnswerForm::Message) };
        let whole: Vec<String> = checker.check_turn(turn).iter().map(verdict_label).collect();
        prop_assert_eq!(judged.iter().map(verdict_label).collect::<Vec<_>>(), whole);
    }
}
