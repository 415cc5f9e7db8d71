//! What a log has of agents: turns below calls, and responses of models.

use crate::open::LockedLog;
use serde_json::value::RawValue;

use super::*;

use toolq_core::types::{
    AgentInvocation, Effect, Invocation, ModelResponse, StopReason, TurnOrigin, Usage,
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

    /// Returns the agent's call of a `read` tool in its turn 0.
    fn request_call(&self, name: &str, input: &str) -> CheckedCall {
        let mut tool = sample_tool(name);
        tool.effect = Effect::Read;
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
            response: Some(&response),
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

/// An agent that runs again makes its requests and calls anew, and so records them anew.
#[test]
fn what_an_agent_does_again_is_recorded_again() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("log.jsonl");
    for mode in [BeginMode::NewTask, BeginMode::Resume] {
        let records = if path.exists() {
            read_lines(&path).len()
        } else {
            0
        };
        let mut agent = AgentFixture::begin_in(&path, mode);
        let look = agent.request_call("look", "{}");
        agent.receive_response();
        agent.run_turn(&look);
        drop(agent);
        let new: Vec<String> = read_lines(&path)[records..]
            .iter()
            .map(|record| record["type"].as_str().unwrap().to_owned())
            .collect();
        let of_input: &[&str] = match mode {
            BeginMode::NewTask => &["session", "turn", "tool_call", "tool_start"],
            _ => &["session", "tool_start"],
        };
        let of_agent = [
            "model_response",
            "turn",
            "tool_call",
            "tool_start",
            "tool_result",
        ];
        assert_eq!(new, [of_input, &of_agent].concat());
    }
    let mut history = TaskHistory::default();
    LockedLog::open(&path, |record, end| history.apply_record(record, end)).unwrap();
    assert_eq!(history.count_input_calls(), 1);
}
