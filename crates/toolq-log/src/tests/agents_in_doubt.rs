//! When a call that an agent works on resumes after a doubt. Calls: the input's `lead` (4), its `sub` (13), which is an
//! agent, too, and `sub`'s `pay` (23).

use crate::tests::listed_records::{ListedRecord, list_history, start_of, visit_listed};

use super::*;

use toolq_core::types::{AgentInvocation, Invocation, ResumeState};

/// Everything up to the start of `pay`.
fn records_of_nested_agents() -> Vec<ListedRecord> {
    let agent_start = |id, call| start_of(id, call, &json!({"agent": "t", "effect": "read"}));
    vec![
        (1, "session", 0, json!({})),
        (2, "turn", 1, json!({"turn": 0})),
        (4, "tool_call", 2, json!({})),
        agent_start(5, 4),
        (11, "turn", 4, json!({"turn": 0, "agent": "t"})),
        (12, "model_response", 4, json!({"turn": 0})),
        (13, "tool_call", 11, json!({})),
        agent_start(14, 13),
        (21, "turn", 13, json!({"turn": 0, "agent": "t"})),
        (22, "model_response", 13, json!({"turn": 0})),
        (23, "tool_call", 21, json!({})),
        start_of(24, 23, &json!({})),
    ]
}

fn doubt_of(id: u128, call: u128) -> ListedRecord {
    (
        id,
        "tool_in_doubt",
        call,
        json!({"is_error": true, "status": "in_doubt"}),
    )
}

fn resolve_of(id: u128, call: u128) -> ListedRecord {
    (id, "resolve", call, json!({"done": false}))
}

/// The calls `lead`, `sub` and `pay`. The first two are agents unless `is_agent` is false.
fn nested_calls(is_agent: bool) -> [CheckedCall; 3] {
    let mut lead = accepted_call(0, sample_tool("t"), false, "{}");
    if let (true, Verdict::Accepted(accepted)) = (is_agent, &mut lead.verdict) {
        accepted.invocation = Some(Invocation::Agent(AgentInvocation { prompt: None }));
    }
    let mut sub = lead.clone();
    sub.call.parent = Some(Arc::new(CallRef::new(&lead.call, Some(0))));
    let mut pay = accepted_call(0, sample_tool("t"), false, "{}");
    pay.call.parent = Some(Arc::new(CallRef::new(&sub.call, Some(0))));
    [lead, sub, pay]
}

/// Says what happens to a call, with `!` if a call below it is in doubt. There is no file, so that a call whose doubt is
/// to be restored can't be read.
fn describe_state(history: &TaskHistory, checked: &CheckedCall) -> &'static str {
    match history.resume_state(checked) {
        Ok(ResumeState::NotStarted) => "not started",
        Ok(ResumeState::Started(prior)) if prior.has_nested_doubt => "resumes!",
        Ok(ResumeState::Started(_)) => "resumes",
        Ok(ResumeState::NeedsProbe(_)) => "needs probe",
        Ok(ResumeState::InDoubt(prior)) if prior.has_nested_doubt => "in doubt!",
        Ok(ResumeState::InDoubt(_)) => "in doubt",
        Ok(ResumeState::Answered(_)) | Err(_) => "restored",
    }
}

/// The call of the input stays in doubt as long as any call below it does. An agent below another resumes along with
/// it, and gets to the call in doubt itself.
#[test]
fn an_agent_in_doubt_resumes_once_the_calls_below_it_are_settled() {
    let [pay_doubt, sub_doubt, lead_doubt] = [(31, 23), (32, 13), (33, 4)];
    let doubt = |(id, call)| doubt_of(id, call);
    let cases: [(&[ListedRecord], _); 6] = [
        (&[], ["resumes!", "resumes!", "in doubt"]),
        (&[doubt(pay_doubt)], ["resumes!", "resumes!", "restored"]),
        (
            &[doubt(pay_doubt), doubt(sub_doubt), doubt(lead_doubt)],
            ["restored", "resumes!", "restored"],
        ),
        // The run was killed while `pay` was running, and its doubt wasn't recorded.
        (&[doubt(lead_doubt)], ["resumes!", "resumes!", "in doubt"]),
        (
            &[
                doubt(pay_doubt),
                doubt(sub_doubt),
                doubt(lead_doubt),
                resolve_of(41, 23),
            ],
            ["resumes", "resumes", "resumes"],
        ),
        (
            &[(31, "tool_result", 23, json!({"attempts": 1}))],
            ["resumes", "resumes", "restored"],
        ),
    ];
    for (later, states) in cases {
        let mut records = records_of_nested_agents();
        records.extend_from_slice(later);
        let history = list_history(&records);
        let found = nested_calls(true).map(|checked| describe_state(&history, &checked));
        assert_eq!(found, states, "{later:?}");
    }
}

/// Only the calls that an agent makes have effects. If a program takes its place, or took it before, that doesn't hold.
#[test]
fn only_a_call_that_was_and_is_an_agents_resumes() {
    let history = list_history(&records_of_nested_agents());
    let [lead, ..] = nested_calls(false);
    assert_eq!(describe_state(&history, &lead), "in doubt!");
    let mut records = records_of_nested_agents();
    records.truncate(3);
    records.push(start_of(5, 4, &json!({})));
    let history = list_history(&records);
    let [lead, ..] = nested_calls(true);
    assert_eq!(describe_state(&history, &lead), "in doubt");
}

/// Of the three calls that have no result, only one is listed for the user.
#[test]
fn only_the_call_with_an_effect_is_listed_as_in_doubt() {
    let mut records = records_of_nested_agents();
    records.extend([(31, 23), (32, 13), (33, 4)].map(|(id, call)| doubt_of(id, call)));
    let list = |records: &[ListedRecord]| {
        let mut calls = InDoubtCalls::default();
        visit_listed(records, |record, _| calls.apply_record(record).unwrap());
        let listed = calls.in_log_order();
        assert_eq!(calls.has_any(), !listed.is_empty());
        let ids = listed.iter().map(|call| call.record_id.as_u128());
        ids.collect::<Vec<_>>()
    };
    assert_eq!(list(&records), [23]);
    records.push(resolve_of(41, 23));
    assert!(list(&records).is_empty());
}

#[test]
fn a_doubt_below_one_agent_does_not_hold_up_another() {
    let agent_start = |id, call| start_of(id, call, &json!({"agent": "t", "effect": "read"}));
    let records = [
        (1, "session", 0, json!({})),
        (2, "turn", 1, json!({"turn": 0})),
        (3, "tool_call", 2, json!({})),
        (4, "tool_call", 2, json!({"position": 1})),
        agent_start(5, 3),
        agent_start(6, 4),
        (11, "turn", 3, json!({"turn": 0, "agent": "t"})),
        (12, "model_response", 3, json!({"turn": 0})),
        (13, "tool_call", 11, json!({})),
        start_of(14, 13, &json!({})),
        doubt_of(21, 13),
        doubt_of(22, 3),
        doubt_of(23, 4),
    ];
    let history = list_history(&records);
    let [lead, ..] = nested_calls(true);
    let mut other = lead.clone();
    other.call.position = 1;
    assert_eq!(describe_state(&history, &lead), "restored");
    assert_eq!(describe_state(&history, &other), "resumes");
}
