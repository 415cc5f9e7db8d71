//! Calls that start only after a yes, with an approver that the test scripts.

use std::collections::BTreeMap;
use std::future::ready;
use std::sync::{Arc, Mutex};

use tokio::sync::{Notify, mpsc};
use tokio::task::yield_now;

use crate::engine::Engine;
use crate::settings::EngineSettings;
use crate::settings::{ApprovalFuture, ApprovalPrompt, ApprovalReply, Approver, PriorApprovals};
use crate::tests::scripted_runner::{
    EventRecorder, PendingAttempts, ScriptedRunner, act_while_running, block_on, call,
    engine_settings, play_script, run_turn_with, success_outcome, tool,
};
use crate::turn::TurnRequest;
use toolq_core::types::{
    Approval, ApprovalDecision, ApprovalMeans, ApprovalRequest, CallLock, CheckedCall, Effect,
    HaltCause, LockMode, LockedResource, Tool, TurnOrigin, Verdict,
};

/// Replies to the question about each call, by id. A call without a reply is never decided.
#[derive(Debug, Default)]
struct ScriptedPrompt {
    replies: BTreeMap<&'static str, ApprovalReply>,
    asked: Mutex<Vec<String>>,
    on_question: Notify,
}

impl ApprovalPrompt for ScriptedPrompt {
    fn ask<'a>(&'a self, request: &'a ApprovalRequest) -> ApprovalFuture<'a> {
        self.asked
            .lock()
            .unwrap()
            .push(request.call.tool_use_id.clone());
        self.on_question.notify_one();
        match self.replies.get(request.call.tool_use_id.as_str()) {
            Some(reply) => Box::pin(ready(reply.clone())),
            None => Box::pin(std::future::pending()),
        }
    }
}

fn decided(decision: ApprovalDecision) -> ApprovalReply {
    ApprovalReply::Decided(Approval {
        decision,
        means: ApprovalMeans::Terminal,
        reason: None,
        user: None,
    })
}

fn prompt(replies: &[(&'static str, ApprovalReply)]) -> Arc<ScriptedPrompt> {
    Arc::new(ScriptedPrompt {
        replies: replies.iter().cloned().collect(),
        ..ScriptedPrompt::default()
    })
}

fn engine(tools: &[&Tool], prompt: Option<&Arc<ScriptedPrompt>>) -> (Engine, PendingAttempts) {
    let person = prompt.map(|prompt| Approver::Person(Arc::clone(prompt) as Arc<_>));
    engine_with(tools, person)
}

fn engine_with(tools: &[&Tool], approver: Option<Approver>) -> (Engine, PendingAttempts) {
    let (send, attempts) = mpsc::unbounded_channel();
    let settings = EngineSettings {
        approver,
        ..engine_settings(tools, 8)
    };
    (
        Engine::with_runner(settings, Arc::new(ScriptedRunner(send))),
        attempts,
    )
}

/// A plan of one call, by its id.
#[derive(Debug)]
struct PlanOf(&'static str);

impl PriorApprovals for PlanOf {
    fn approval_of(&self, request: &ApprovalRequest) -> Option<Approval> {
        (request.call.tool_use_id == self.0).then(|| Approval {
            decision: ApprovalDecision::Yes,
            means: ApprovalMeans::Plan("p".into()),
            reason: None,
            user: None,
        })
    }
}

/// Two tools, one of which changes things.
fn tools() -> [Tool; 2] {
    let write = Tool {
        effect: Effect::Write,
        ..tool("write")
    };
    [tool("read"), write]
}

/// Returns calls in this order. A call to the tool that changes things has an uppercase id.
fn calls(ids: &str, [read, write]: &[Tool; 2]) -> Vec<CheckedCall> {
    let ids = ids.split_whitespace().enumerate();
    ids.map(|(position, id)| {
        let is_write = id.starts_with(|c: char| c.is_uppercase());
        call(position, id, if is_write { write } else { read })
    })
    .collect()
}

/// Runs a turn while `script` plays, and returns what was recorded.
fn run(prompt: Option<&Arc<ScriptedPrompt>>, ids: &str, script: &str) -> EventRecorder {
    let mut recorder = EventRecorder::default();
    run_with(prompt, ids, script, &mut recorder);
    recorder
}

fn run_with(
    prompt: Option<&Arc<ScriptedPrompt>>,
    ids: &str,
    script: &str,
    recorder: &mut EventRecorder,
) {
    let tools = tools();
    let (mut engine, mut attempts) = engine(&[&tools[0], &tools[1]], prompt);
    let calls = calls(ids, &tools);
    let script = play_script(&mut attempts, script);
    run_turn_with(&mut engine, calls, recorder, script);
}

/// Later calls with effects keep their order for a later run, and those that only read needn't wait for that.
#[test]
fn without_an_approver_a_call_and_those_with_effects_after_it_do_not_run() {
    let recorder = run(None, "a B? c D e?", "a c");
    let mut finished = recorder.lines_for("finished");
    finished.sort();
    let expected = [
        "B? needs_approval 0",
        "D not_executed 0",
        "a ok 1",
        "c ok 1",
        "e? needs_approval 0",
    ];
    assert_eq!(finished, expected);
    assert_eq!(recorder.lines_for("delivered"), ["a", "B?", "c", "D", "e?"]);
}

#[test]
fn a_yes_is_recorded_before_the_start_and_a_no_ends_the_call() {
    let prompt = prompt(&[
        ("A?", decided(ApprovalDecision::Yes)),
        ("B?", decided(ApprovalDecision::No)),
        ("C?", decided(ApprovalDecision::Yes)),
    ]);
    let recorder = run(Some(&prompt), "A? B? C?", "A? C?");
    let lines = recorder.lines();
    let at = |line: &str| lines.iter().position(|other| other.contains(line)).unwrap();
    assert!(at("asked A?") < at("decided A? yes") && at("decided A? yes") < at("started A?"));
    assert!(at("decided B? no") < at("finished B? denied 0"));
    assert!(at("decided C? yes") < at("started C?"));
    assert!(!recorder.has_started("B?"));
    assert_eq!(recorder.lines_for("delivered"), ["A?", "B?", "C?"]);
}

/// The log must have the yes.
#[test]
fn a_call_does_not_start_if_its_yes_cannot_be_recorded() {
    let prompt = prompt(&[("A?", decided(ApprovalDecision::Yes))]);
    let mut recorder = EventRecorder {
        refused_decision: Some("A?"),
        ..EventRecorder::default()
    };
    run_with(Some(&prompt), "A? b", "b", &mut recorder);
    let finished = recorder.lines_for("finished");
    assert!(
        finished.contains(&"A? log_refused 0".to_owned()),
        "{finished:?}"
    );
    assert!(!recorder.has_started("A?"));
}

/// Calls before it continue, and calls after it wait.
#[test]
fn a_call_holds_its_place_while_it_waits() {
    let prompt = prompt(&[("b?", decided(ApprovalDecision::Yes))]);
    let recorder = run(Some(&prompt), "a b? c", "a b? c");
    let started: Vec<String> = recorder
        .lines()
        .iter()
        .flat_map(|line| line.split(" + ").map(str::to_owned).collect::<Vec<_>>())
        .filter(|line| line.starts_with("started"))
        .collect();
    assert_eq!(started, ["started a 1", "started b? 1", "started c 1"]);
}

/// Returns calls in this order, each of which changes what the letter after its id says.
fn calls_with_locks(ids: &str, tools: &[Tool; 2]) -> Vec<CheckedCall> {
    let (ids, resources): (Vec<&str>, Vec<&str>) = ids
        .split_whitespace()
        .filter_map(|call| call.split_once(':'))
        .unzip();
    let mut calls = calls(&ids.join(" "), tools);
    for (checked, resource) in calls.iter_mut().zip(resources) {
        if let Verdict::Accepted(accepted) = &mut checked.verdict {
            accepted.locks = Some(Arc::new(vec![CallLock {
                name: resource.to_owned(),
                mode: LockMode::Write,
                resource: LockedResource::Text(resource.to_owned()),
            }]));
        }
    }
    calls
}

/// Runs a turn of calls with locks while `script` plays.
fn run_with_locks(approver: Approver, ids: &str, script: &str) -> EventRecorder {
    let tools = tools();
    let (mut engine, mut attempts) = engine_with(&[&tools[0], &tools[1]], Some(approver));
    let mut recorder = EventRecorder::default();
    let calls = calls_with_locks(ids, &tools);
    let script = play_script(&mut attempts, script);
    run_turn_with(&mut engine, calls, &mut recorder, script);
    recorder
}

/// A decision about a call may matter to all that follow, so they don't pass it before, even if locks would let them.
#[test]
fn a_call_that_locks_let_pass_waits_for_the_decision_about_an_earlier_one() {
    let prompt = prompt(&[]);
    let tools = tools();
    let (mut engine, mut attempts) = engine(&[&tools[0], &tools[1]], Some(&prompt));
    let control = engine.control();
    let mut recorder = EventRecorder::default();
    let calls = calls_with_locks("A:x B?:x C:y", &tools);
    run_turn_with(&mut engine, calls, &mut recorder, async {
        prompt.on_question.notified().await;
        act_while_running(&mut attempts, "A", || {}).await;
        control.halt(HaltCause::Signal(2));
    });
    assert!(!recorder.has_started("B?") && !recorder.has_started("C"));
}

/// The script ends first what a lock doesn't hold up, so it has to start while the others wait.
#[test]
fn once_an_earlier_call_is_decided_locks_let_others_pass_it() {
    let prompt = prompt(&[("B?", decided(ApprovalDecision::Yes))]);
    let person = Approver::Person(prompt);
    let recorder = run_with_locks(person, "A:x B?:x C:y", "C A B?");
    assert_eq!(recorder.lines_for("delivered"), ["A", "B?", "C"]);
}

#[test]
fn calls_that_are_approved_in_advance_pass_each_other_and_only_they_are_decided() {
    let all = Approver::All { user: None };
    let recorder = run_with_locks(all, "A:x B?:x C?:y D:z", "D C? A B?");
    let mut decided = recorder.lines_for("decided");
    decided.sort();
    assert_eq!(decided, ["B? yes", "C? yes"]);
}

#[test]
fn a_planned_call_passes_one_that_waits_for_a_lock() {
    let planned = Approver::Planned {
        approvals: Arc::new(PlanOf("C?")),
        otherwise: None,
    };
    let recorder = run_with_locks(planned, "A:x B:x C?:y", "C? A B");
    assert_eq!(recorder.lines_for("decided"), ["C? yes"]);
}

#[test]
fn an_approver_that_stops_the_run_stops_it() {
    let prompt = prompt(&[("A?", ApprovalReply::Stopped("quit".to_owned()))]);
    let recorder = run(Some(&prompt), "A? b", "");
    assert_eq!(recorder.lines_for("stopped"), ["A? quit"]);
    let mut finished = recorder.lines_for("finished");
    finished.sort();
    assert_eq!(finished, ["A? needs_approval 0", "b not_executed 0"]);
}

#[derive(Debug)]
struct PanickingPrompt;

impl ApprovalPrompt for PanickingPrompt {
    fn ask<'a>(&'a self, _request: &'a ApprovalRequest) -> ApprovalFuture<'a> {
        Box::pin(async { panic!("panics on purpose") })
    }
}

#[test]
fn an_approver_that_panics_stops_the_run() {
    let tools = tools();
    let approver = Approver::Person(Arc::new(PanickingPrompt));
    let (mut engine, _attempts) = engine_with(&[&tools[0], &tools[1]], Some(approver));
    let mut recorder = EventRecorder::default();
    let calls = calls("A? b", &tools);
    run_turn_with(&mut engine, calls, &mut recorder, ready(()));
    assert_eq!(recorder.lines_for("stopped"), ["A? panics on purpose"]);
    let mut finished = recorder.lines_for("finished");
    finished.sort();
    assert_eq!(finished, ["A? needs_approval 0", "b not_executed 0"]);
}

/// A question about a call that will never run doesn't need an answer.
#[test]
fn a_halt_withdraws_the_question() {
    let prompt = prompt(&[]);
    let tools = tools();
    let (mut engine, _attempts) = engine(&[&tools[0], &tools[1]], Some(&prompt));
    let control = engine.control();
    let mut recorder = EventRecorder::default();
    run_turn_with(&mut engine, calls("A? b", &tools), &mut recorder, async {
        prompt.on_question.notified().await;
        control.halt(HaltCause::Signal(2));
    });
    assert_eq!(*prompt.asked.lock().unwrap(), ["A?"]);
    let mut finished = recorder.lines_for("finished");
    finished.sort();
    assert_eq!(finished, ["A? not_executed 0", "b not_executed 0"]);
}

/// Among concurrent turns, one whose call waits for an approval doesn't block the others, not even a call that has to
/// run alone.
#[test]
fn a_turn_that_waits_for_an_approval_gives_way() {
    let prompt = prompt(&[]);
    let tools = tools();
    let (mut engine, mut attempts) = engine(&[&tools[0], &tools[1]], Some(&prompt));
    let mut recorder = EventRecorder::default();
    let (mut delivery, watched) = (recorder.clone(), recorder.clone());
    let (sender, receiver) = mpsc::unbounded_channel();
    for (number, mut checked) in calls("A? B", &tools).into_iter().enumerate() {
        (checked.call.turn, checked.call.position) = (number, 0);
        let request = TurnRequest::Run {
            number,
            calls: vec![checked],
            origin: TurnOrigin::default(),
            outputs: None,
        };
        sender.send(request).unwrap();
    }
    block_on(async {
        let meanwhile = async {
            let (id, end) = attempts.recv().await.unwrap();
            assert_eq!(id, "B");
            end.send(success_outcome()).unwrap();
            while watched.lines_for("delivered") != ["B"] {
                yield_now().await;
            }
            sender.send(TurnRequest::Cancel(0)).unwrap();
            drop(sender);
        };
        tokio::join!(
            engine.run_concurrent_turns(receiver, &mut recorder, &mut delivery),
            meanwhile
        );
    });
    assert_eq!(recorder.lines_for("delivered"), ["B", "A?"]);
    assert!(!recorder.has_started("A?"));
}

/// The calls of the plan are approved, and the rest have no approver.
#[test]
fn a_plan_approves_its_calls_and_no_others() {
    let tools = tools();
    let planned = Approver::Planned {
        approvals: Arc::new(PlanOf("A?")),
        otherwise: None,
    };
    let (mut engine, mut attempts) = engine_with(&[&tools[0], &tools[1]], Some(planned));
    let mut recorder = EventRecorder::default();
    let calls = calls("A? B? c? d", &tools);
    let script = play_script(&mut attempts, "A? d");
    run_turn_with(&mut engine, calls, &mut recorder, script);
    let mut finished = recorder.lines_for("finished");
    finished.sort();
    let expected = [
        "A? ok 1",
        "B? needs_approval 0",
        "c? needs_approval 0",
        "d ok 1",
    ];
    assert_eq!(finished, expected);
}
