//! What a log knows about agents: turns below calls, responses of models, and what of that a later run can rely on.

use crate::open::LockedLog;
use serde_json::value::RawValue;

use super::*;

use toolq_core::types::{
    AgentHistory, AgentInvocation, Effect, Invocation, ModelResponse, ResumeState, StopReason,
    TurnOrigin, Usage,
};

/// A log in which an agent works on call 0 of turn 0.
struct AgentFixture {
    log: SessionLog,
    lead_call: Arc<CallRef>,
}

impl AgentFixture {
    /// Begins a task, or resumes it.
    fn begin_in(path: &Path, begin: BeginMode) -> Self {
        let log = PreparedLog::open(path, begin, TaskKey::default()).unwrap();
        let log = log.begin_session(&session_header(), Arc::new(Mask::default()), fixed_clock());
        let mut log = log.unwrap();
        let mut lead = accepted_call(0, sample_tool("lead"), false, "{}");
        if let Verdict::Accepted(accepted) = &mut lead.verdict {
            let task = AgentInvocation { prompt: None };
            accepted.invocation = Some(Invocation::Agent(task));
        }
        let turn = Event::TurnStarted {
            turn: 0,
            parent: None,
            origin: &TurnOrigin::default(),
        };
        let queued = Event::Queued {
            checked: &lead,
            batch: Some(0),
        };
        log.emit(&[turn, queued]).unwrap();
        let call = Arc::new(CallRef::new(&lead.call, Some(0)));
        emit_start(&mut log, &call, &lead);
        Self {
            log,
            lead_call: call,
        }
    }

    /// Returns the agent's call of a tool in its turn 0. All tools but `pay` are `read`.
    fn request_call(&self, name: &str, input: &str) -> CheckedCall {
        let mut tool = sample_tool(name);
        if name != "pay" {
            tool.effect = Effect::Read;
        }
        let mut checked = accepted_call(0, tool, false, input);
        checked.call.parent = Some(Arc::clone(&self.lead_call));
        checked
    }

    fn run_turn(&mut self, checked: &CheckedCall) {
        let turn = Event::TurnStarted {
            turn: 0,
            parent: Some(&self.lead_call),
            origin: &TurnOrigin::default(),
        };
        let queued = Event::Queued {
            checked,
            batch: Some(0),
        };
        self.log.emit(&[turn, queued]).unwrap();
        let call = CallRef::new(&checked.call, Some(0));
        emit_start(&mut self.log, &call, checked);
        emit_finished(
            &mut self.log,
            &call,
            &success_outcome("seen"),
            "seen",
            (1, 1),
        )
        .unwrap();
    }

    fn receive_response(&mut self) {
        let raw = |text: &str| RawValue::from_string(text.to_owned()).unwrap();
        let response = ModelResponse {
            body: raw("{\"content\":[]}"),
            message: raw("{}"),
            text: String::new(),
            stop_reason: StopReason::Complete,
            unknown_stop_reason: None,
            message_id: Some("msg".to_owned()),
            model: Some("m".to_owned()),
            provider: None,
            usage: Usage {
                input: 7,
                ..Usage::default()
            }
            .into(),
        };
        let event = Event::AgentMessage {
            call: &self.lead_call,
            message: &response.message,
            response: Some((&response, "digest")),
            turn: 0,
        };
        self.log.emit(&[event]).unwrap();
    }
}

pub(super) fn emit_start(log: &mut SessionLog, call: &CallRef, checked: &CheckedCall) {
    let Verdict::Accepted(accepted) = &checked.verdict else {
        unreachable!()
    };
    let started = Event::Started {
        call,
        accepted,
        attempt: 1,
        idempotency_key: "key",
        waited: None,
    };
    log.emit(&[started]).unwrap();
}

/// Reads what the log at `path` knows about agents.
fn read_agent_history(path: &Path) -> (Arc<TaskHistory>, LogAgentHistory) {
    let mut history = TaskHistory::default();
    let log = LockedLog::open(path, |record, end| history.apply_record(record, end)).unwrap();
    history.set_source(path.to_owned(), log.clone_file().unwrap());
    let history = Arc::new(history);
    let agent_history = LogAgentHistory::new(Arc::clone(&history), Arc::new(Mask::default()));
    (history, agent_history)
}

/// The responses that an agent received and the calls that it made are found below the agent's call.
#[test]
fn responses_and_calls_of_an_agent_are_restored() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("log.jsonl");
    let mut agent = AgentFixture::begin_in(&path, BeginMode::NewTask);
    let look = agent.request_call("look", "{}");
    let (other, lead) = (
        agent.request_call("look", "{\"n\":1}"),
        Arc::clone(&agent.lead_call),
    );
    agent.receive_response();
    agent.run_turn(&look);
    drop(agent);
    let (history, agent_history) = read_agent_history(&path);
    let response = agent_history.logged_response(&lead, 0).unwrap().unwrap();
    assert_eq!(
        (response.body.get(), response.model.as_deref()),
        ("{\"content\":[]}", Some("m"))
    );
    assert!(agent_history.logged_response(&lead, 1).unwrap().is_none());
    let Ok(ResumeState::Answered(answered)) = agent_history.resume_state(&look) else {
        panic!("the call has a result");
    };
    assert_eq!(answered.status, "ok");
    let conflict = agent_history.resume_state(&other).unwrap_err().0;
    assert_eq!(
        conflict,
        "turn 0, call 0: the session log has look {}, the agent has look {\"n\":1}"
    );
    let usage = agent_history.logged_usage(&lead);
    assert_eq!((usage.len(), usage[0].1.0.unwrap().input), (1, 7));
    assert_eq!(
        (history.count_input_calls(), history.positions().count()),
        (1, 2)
    );
    drop((history, agent_history));
    // Records that exist aren't written again.
    let records = read_lines(&path).len();
    let mut again = AgentFixture::begin_in(&path, BeginMode::Resume);
    again.run_turn(&look);
    drop(again);
    let new: Vec<String> = read_lines(&path)[records..]
        .iter()
        .map(|record| record["type"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(new, ["session", "tool_start", "tool_start", "tool_result"]);
}

/// A request whose response didn't complete is repeated, and the new response may request other calls. So the `read`
/// calls that had already started don't count.
#[test]
fn a_turn_without_a_response_is_not_resumed() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("log.jsonl");
    let mut agent = AgentFixture::begin_in(&path, BeginMode::NewTask);
    let look = agent.request_call("look", "{}");
    agent.run_turn(&look);
    drop(agent);
    let first = read_agent_history(&path).1;
    assert!(matches!(
        first.resume_state(&look),
        Ok(ResumeState::NotStarted)
    ));
    drop(first);
    // Now the model requests something else.
    let mut again = AgentFixture::begin_in(&path, BeginMode::Resume);
    let seek = again.request_call("seek", "{}");
    again.run_turn(&seek);
    again.receive_response();
    drop(again);
    let second = read_agent_history(&path).1;
    assert!(matches!(
        second.resume_state(&seek),
        Ok(ResumeState::Answered(_))
    ));
    let conflict = second.resume_state(&look).unwrap_err().0;
    assert!(conflict.contains("the session log has seek"), "{conflict}");
    let turns = read_lines(&path);
    let turns = turns.iter().filter(|record| record["type"] == "turn");
    assert_eq!(turns.count(), 3);
}

/// A `write` call only starts once its response is complete. So another call in its place is a conflict, even if the
/// turn began while the response was still streaming.
#[test]
fn a_call_that_writes_belongs_to_a_complete_response() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("log.jsonl");
    let mut agent = AgentFixture::begin_in(&path, BeginMode::NewTask);
    let pay = agent.request_call("pay", "{}");
    let other = agent.request_call("pay", "{ }");
    agent.run_turn(&pay);
    agent.receive_response();
    drop(agent);
    let agent_history = read_agent_history(&path).1;
    assert!(matches!(
        agent_history.resume_state(&pay),
        Ok(ResumeState::Answered(_))
    ));
    let conflict = agent_history.resume_state(&other).unwrap_err().0;
    assert!(conflict.contains("the session log has pay"), "{conflict}");
}

/// The response of a later run completes, but that run ends before the turn begins. The calls that the log has in this
/// turn belong to the earlier response, which didn't complete, so they don't count, even if they are the same.
#[test]
fn a_later_response_has_no_calls_of_an_earlier_one() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("log.jsonl");
    let mut agent = AgentFixture::begin_in(&path, BeginMode::NewTask);
    let (look, seek) = (
        agent.request_call("look", "{}"),
        agent.request_call("seek", "{}"),
    );
    agent.run_turn(&look);
    drop(agent);
    let mut again = AgentFixture::begin_in(&path, BeginMode::Resume);
    again.receive_response();
    let lead = Arc::clone(&again.lead_call);
    drop(again);
    let agent_history = read_agent_history(&path).1;
    assert!(agent_history.logged_response(&lead, 0).unwrap().is_some());
    for call in [look, seek] {
        assert!(matches!(
            agent_history.resume_state(&call),
            Ok(ResumeState::NotStarted)
        ));
    }
}
