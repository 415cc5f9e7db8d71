//! A reader of events that follows each call like a user interface does, and checks that they are consistent.

use std::collections::HashMap;

use serde_json::Value;

/// Identifies a call in events: the agent call that made it, its turn there, its id.
type EventCallKey = (Option<String>, u64, String);

/// What happened to one call.
#[derive(Default)]
pub struct CallTimeline {
    pub name: String,
    /// The types of its events, in order.
    pub event_types: Vec<String>,
    /// `state` as of its last event.
    pub state: Value,
    /// `turn` of each `agent_progress`.
    pub agent_turns: Vec<u64>,
    /// `status` of its last `tool_completed` or `tool_error`.
    pub status: String,
}

/// Everything known about a run from its events. Checks each event against the ones before it.
#[derive(Default)]
pub struct RunTimeline {
    pub calls: HashMap<EventCallKey, CallTimeline>,
    /// The ids of the calls whose agents are running.
    running_agents: Vec<String>,
    /// How many calls of the current turn have no result yet.
    unanswered_calls: usize,
    /// The turns that have ended, in order.
    pub drained_turns: Vec<u64>,
    last_timestamp: u64,
    /// Whether the calls of the input get a `result_written` event.
    expects_result_written: bool,
}

fn str_field<'v>(event: &'v Value, key: &str) -> &'v str {
    event[key].as_str().unwrap_or_default()
}

/// Returns whether a call may go from one state to another.
fn may_follow(before: &str, now: &str) -> bool {
    let order = ["", "wait", "doing", "success", "error"];
    let at = |word: &str| order.iter().position(|other| *other == word).unwrap();
    before == now || at(before) < at(now) && !(before == "success" && now == "error")
}

impl RunTimeline {
    /// Reads the events of `toolq run`.
    pub fn from_run_events(events: &[Value]) -> Self {
        Self::check_events(events, true)
    }

    /// Reads the events of `toolq call`, which prints its answer after the last event.
    pub fn from_agent_events(events: &[Value]) -> Self {
        Self::check_events(events, false)
    }

    fn check_events(events: &[Value], written: bool) -> Self {
        let mut timeline = Self {
            expects_result_written: written,
            ..Self::default()
        };
        for event in events {
            timeline.apply_event(event);
        }
        assert_eq!(timeline.unanswered_calls, 0, "calls without a result");
        assert_eq!(
            timeline.running_agents,
            Vec::<String>::new(),
            "agents without an end"
        );
        assert_eq!(events.last().unwrap()["type"], "queue_drained");
        for call in timeline.calls.values() {
            call.assert_complete();
        }
        timeline
    }

    fn apply_event(&mut self, event: &Value) {
        let timestamp = event["timestamp"].as_u64().unwrap();
        assert!(timestamp >= self.last_timestamp, "{event}");
        self.last_timestamp = timestamp;
        let turn = event["turn"].as_u64().unwrap();
        let agent = event["agent_tool_use_id"].as_str();
        if let Some(agent) = agent {
            assert!(self.running_agents.iter().any(|id| id == agent), "{event}");
        }
        match str_field(event, "type") {
            "queue_drained" => {
                assert!(agent.is_none(), "an agent's turn must not send: {event}");
                assert_eq!(self.unanswered_calls, 0, "{event}");
                self.drained_turns.push(turn);
            }
            "batch_started" => assert!(!event["calls"].as_array().unwrap().is_empty()),
            kind => {
                assert!(
                    !self.drained_turns.contains(&turn)
                        || agent.is_some()
                        || kind == "agent_progress",
                    "{event}"
                );
                self.apply_call_event(kind, event);
            }
        }
    }

    fn apply_call_event(&mut self, kind: &str, event: &Value) {
        let id = str_field(event, "tool_use_id").to_owned();
        let agent = event["agent_tool_use_id"].as_str().map(str::to_owned);
        // `turn` in `agent_progress` counts the agent's own turns, so the call is found by its running agent.
        let turn = event["turn"].as_u64().unwrap();
        let key = if kind == "agent_progress" {
            let running_call = |(key, call): (&EventCallKey, &CallTimeline)| {
                let matches = (&key.0, &key.2) == (&agent, &id) && call.is_agent_running();
                matches.then(|| key.clone())
            };
            self.calls.iter().find_map(running_call).unwrap()
        } else {
            (agent.clone(), turn, id.clone())
        };
        let call = self.calls.entry(key).or_default();
        call.apply_event(kind, event);
        match kind {
            "tool_queued" => self.unanswered_calls += 1,
            "agent_started" => self.running_agents.push(id),
            "agent_completed" => {
                let at = self.running_agents.iter().position(|other| *other == id);
                self.running_agents.remove(at.unwrap());
            }
            "result_written" => self.unanswered_calls -= 1,
            "tool_completed" | "tool_error" if agent.is_some() || !self.expects_result_written => {
                self.unanswered_calls -= 1;
            }
            _ => {}
        }
    }
}

impl CallTimeline {
    fn is_agent_running(&self) -> bool {
        let count = |kind: &str| {
            self.event_types
                .iter()
                .filter(|other| *other == kind)
                .count()
        };
        count("agent_started") > count("agent_completed")
    }

    fn has_event(&self, kind: &str) -> bool {
        self.event_types.iter().any(|other| other == kind)
    }

    fn apply_event(&mut self, kind: &str, event: &Value) {
        let (before, state) = (&self.state, &event["state"]);
        let (was, now) = (str_field(before, "state"), str_field(state, "state"));
        assert!(may_follow(was, now), "{was} → {now}: {event}");
        let expected: &[&str] = match kind {
            "tool_queued" => &["wait"],
            "tool_started" | "tool_status" | "agent_started" | "agent_progress"
            | "agent_completed" => &["doing"],
            "tool_completed" if event["success"] == true => &["success"],
            "tool_completed" | "tool_error" => &["error"],
            "result_written" => &["success", "error"],
            other => panic!("{other} isn't an event of a call"),
        };
        assert!(expected.contains(&now), "{event}");
        // State accumulates: input and result never change, and a tip or progress stays until it is replaced.
        for member in ["params", "result", "tip", "progress"] {
            let is_lost = !before[member].is_null() && state[member].is_null();
            let is_new_attempt = kind == "tool_started" && ["tip", "progress"].contains(&member);
            assert!(!is_lost || is_new_attempt, "{member} is lost: {event}");
        }
        assert!(
            before["params"].is_null() || before["params"] == state["params"],
            "{event}"
        );
        let has_result = ["success", "error"].contains(&now);
        assert_eq!(state["result"].is_null(), !has_result, "{event}");
        match kind {
            "tool_queued" => str_field(event, "tool_name").clone_into(&mut self.name),
            "agent_started" | "agent_completed" => {
                assert_eq!(str_field(event, "agent_name"), self.name);
            }
            "agent_progress" => {
                assert!(self.is_agent_running(), "{event}");
                let turn = event["turn"].as_u64().unwrap();
                assert!(turn < event["max_turns"].as_u64().unwrap(), "{event}");
                self.agent_turns.push(turn);
            }
            "tool_completed" | "tool_error" => {
                str_field(event, "status").clone_into(&mut self.status);
            }
            _ => {}
        }
        assert_eq!(str_field(event, "tool_name"), self.name, "{event}");
        self.event_types.push(kind.to_owned());
        self.state = state.clone();
    }

    /// Asserts that all events of the call have arrived, in order.
    fn assert_complete(&self) {
        let (name, types) = (&self.name, &self.event_types);
        assert_eq!(types[0], "tool_queued", "{name}: {types:?}");
        let ends = types
            .iter()
            .filter(|kind| *kind == "tool_completed" || *kind == "tool_error");
        assert_eq!(ends.count(), 1, "{name}: {types:?}");
        let rank = |kind: &str| match kind {
            "tool_queued" => 0,
            "tool_started" => 1,
            "agent_started" => 2,
            "agent_progress" | "tool_status" => 3,
            "agent_completed" => 4,
            "tool_completed" | "tool_error" => 5,
            _ => 6,
        };
        let ranks: Vec<u8> = types.iter().map(|kind| rank(kind)).collect();
        assert!(ranks.is_sorted(), "{name}: {types:?}");
        assert_eq!(
            self.has_event("agent_started"),
            self.has_event("agent_completed"),
            "{name}"
        );
        let counted: Vec<u64> = (0..self.agent_turns.len() as u64).collect();
        assert_eq!(self.agent_turns, counted, "{name}");
    }
}
