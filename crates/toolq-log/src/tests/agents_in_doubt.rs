//! What becomes of an agent that was cut off. Calls: the input's `lead` (4), its `sub` (13), which is an agent, too, and
//! `sub`'s `pay` (23).

use crate::tests::listed_records::{ListedRecord, list_history, start_of, visit_listed};

use super::*;

use toolq_core::types::{AgentInvocation, Invocation, ResumeState};

/// Everything up to the start of `pay`, whose tool has this effect.
fn records_of_nested_agents(effect: &str) -> Vec<ListedRecord> {
    vec![
        (1, "session", 0, json!({})),
        (2, "turn", 1, json!({"turn": 0})),
        (4, "tool_call", 2, json!({})),
        start_of(5, 4, &json!({"agent": "t"})),
        (11, "turn", 4, json!({"turn": 0, "agent": "t"})),
        (12, "model_response", 4, json!({"turn": 0})),
        (13, "tool_call", 11, json!({})),
        start_of(14, 13, &json!({"agent": "t"})),
        (21, "turn", 13, json!({"turn": 0, "agent": "t"})),
        (22, "model_response", 13, json!({"turn": 0})),
        (23, "tool_call", 21, json!({})),
        start_of(24, 23, &json!({"effect": effect})),
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

/// The call `lead`, on which an agent works if `is_agent` is true.
fn lead_call(is_agent: bool) -> CheckedCall {
    let mut lead = accepted_call(0, sample_tool("t"), false, "{}");
    if let (true, Verdict::Accepted(accepted)) = (is_agent, &mut lead.verdict) {
        accepted.invocation = Some(Invocation::Agent(AgentInvocation { prompt: None }));
    }
    lead
}

/// Says what happens to a call. There is no file, so that a call whose doubt is to be restored can't be read.
fn describe_state(history: &TaskHistory, checked: &CheckedCall) -> &'static str {
    match history.resume_state(checked) {
        Ok(ResumeState::NotStarted) => "not started",
        Ok(ResumeState::Started(_)) => "runs again",
        Ok(ResumeState::NeedsProbe(_)) => "needs probe",
        Ok(ResumeState::InDoubt(_)) => "in doubt",
        Ok(ResumeState::Answered(_)) | Err(_) => "restored",
    }
}

/// Returns the calls that are listed as in doubt.
fn calls_in_doubt(records: &[ListedRecord]) -> Vec<u128> {
    let mut calls = InDoubtCalls::default();
    visit_listed(records, |record, _| calls.apply_record(record).unwrap());
    let listed = calls.in_log_order();
    assert_eq!(calls.has_any(), !listed.is_empty());
    let ids = listed.iter().map(|call| call.record_id.as_u128());
    ids.collect()
}

/// However deep the call is, and whether or not it has a result: the agent could repeat it.
#[test]
fn an_agent_is_in_doubt_if_a_call_that_is_not_read_had_started() {
    let result = (31, "tool_result", 23, json!({"attempts": 1}));
    let [pay_doubt, lead_doubt] = [doubt_of(32, 23), doubt_of(33, 4)];
    let settled = [pay_doubt.clone(), lead_doubt.clone(), resolve_of(41, 4)];
    let cases: [(&str, &[ListedRecord], &str, &[u128]); 7] = [
        ("read", &[], "runs again", &[]),
        ("idempotent", &[], "in doubt", &[4]),
        ("write", &[], "in doubt", &[4]),
        ("write", &[result], "in doubt", &[4]),
        ("write", &[pay_doubt, lead_doubt], "restored", &[4]),
        ("write", &settled, "runs again", &[]),
        // A call of an agent can't be settled by itself.
        ("write", &[resolve_of(41, 23)], "in doubt", &[4]),
    ];
    for (effect, later, state, in_doubt) in cases {
        let mut records = records_of_nested_agents(effect);
        records.extend_from_slice(later);
        let history = list_history(&records);
        let found = describe_state(&history, &lead_call(true));
        assert_eq!(found, state, "{effect} {later:?}");
        assert_eq!(calls_in_doubt(&records), in_doubt, "{effect} {later:?}");
    }
}

/// What an earlier attempt did is settled, or the agent wouldn't have begun again.
#[test]
fn only_the_calls_of_the_last_attempt_count() {
    let mut records = records_of_nested_agents("write");
    records.extend([doubt_of(33, 4), resolve_of(41, 4)]);
    records.push(start_of(42, 4, &json!({"agent": "t", "attempt": 2})));
    let history = list_history(&records);
    assert_eq!(describe_state(&history, &lead_call(true)), "runs again");
    assert!(calls_in_doubt(&records).is_empty());
}

/// If a program takes the place of an agent, or took it before, the effect of its tool counts.
#[test]
fn only_a_call_that_was_and_is_an_agents_has_no_effect_of_its_own() {
    let history = list_history(&records_of_nested_agents("read"));
    assert_eq!(describe_state(&history, &lead_call(false)), "in doubt");
    let mut records = records_of_nested_agents("read");
    records.truncate(3);
    records.push(start_of(5, 4, &json!({})));
    let history = list_history(&records);
    assert_eq!(describe_state(&history, &lead_call(true)), "in doubt");
}

#[test]
fn a_doubt_about_one_agent_does_not_hold_up_another() {
    let records = [
        (1, "session", 0, json!({})),
        (2, "turn", 1, json!({"turn": 0})),
        (3, "tool_call", 2, json!({})),
        (4, "tool_call", 2, json!({"position": 1})),
        start_of(5, 3, &json!({"agent": "t"})),
        start_of(6, 4, &json!({"agent": "t"})),
        (11, "turn", 3, json!({"turn": 0, "agent": "t"})),
        (12, "model_response", 3, json!({"turn": 0})),
        (13, "tool_call", 11, json!({})),
        start_of(14, 13, &json!({})),
    ];
    let history = list_history(&records);
    let lead = lead_call(true);
    let mut other = lead.clone();
    other.call.position = 1;
    assert_eq!(describe_state(&history, &lead), "in doubt");
    assert_eq!(describe_state(&history, &other), "runs again");
}

/// A log that somebody has changed may say that an agent works for itself.
#[test]
fn a_circle_of_agents_ends() {
    let records = [
        (1, "session", 0, json!({})),
        (2, "turn", 4, json!({"turn": 0, "agent": "t"})),
        (4, "tool_call", 2, json!({})),
        start_of(5, 4, &json!({})),
    ];
    assert!(calls_in_doubt(&records).is_empty());
    assert!(list_history(&records).is_empty());
}
