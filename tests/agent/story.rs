//! Events, read as somebody reads them who shows a run: each call has a story, and `state` is all that is known of it.

use std::collections::HashMap;

use serde_json::Value;

/// A call as events name it: the agent's call that it is of, its turn there, its id.
type Key = (Option<String>, u64, String);

/// What one call went through.
#[derive(Default)]
pub struct Told {
    pub name: String,
    /// The types of its events, in their order.
    pub types: Vec<String>,
    /// `state` as of its last event.
    pub state: Value,
    /// `turn` of each `agent_progress`.
    pub turns: Vec<u64>,
    /// `status` of its end.
    pub status: String,
}

/// Reads the events of a run from the first to the last, and holds each against what was told before.
#[derive(Default)]
pub struct Story {
    pub calls: HashMap<Key, Told>,
    /// The calls on which agents work, by id, and until when.
    at_work: Vec<String>,
    /// Calls of the turn that is told, which have no result yet.
    open: usize,
    /// Turns that came to their end.
    pub drained: Vec<u64>,
    last: u64,
    /// Results of the input's calls are written to stdout, too.
    written: bool,
}

fn word<'v>(event: &'v Value, key: &str) -> &'v str {
    event[key].as_str().unwrap_or_default()
}

/// Where a call may go from each state.
fn follows(before: &str, now: &str) -> bool {
    let order = ["", "wait", "doing", "success", "error"];
    let at = |word: &str| order.iter().position(|other| *other == word).unwrap();
    before == now || at(before) < at(now) && !(before == "success" && now == "error")
}

impl Story {
    /// Of `toolq run`.
    pub fn of(events: &[Value]) -> Self {
        Self::told(events, true)
    }

    /// Of `toolq agent`, which prints its answer when all is told.
    pub fn of_agent(events: &[Value]) -> Self {
        Self::told(events, false)
    }

    fn told(events: &[Value], written: bool) -> Self {
        let mut story = Self {
            written,
            ..Self::default()
        };
        for event in events {
            story.take(event);
        }
        assert_eq!(story.open, 0, "calls without a result");
        assert_eq!(story.at_work, Vec::<String>::new(), "agents without an end");
        assert_eq!(events.last().unwrap()["type"], "queue_drained");
        for told in story.calls.values() {
            told.is_whole();
        }
        story
    }

    fn take(&mut self, event: &Value) {
        let timestamp = event["timestamp"].as_u64().unwrap();
        assert!(timestamp >= self.last, "{event}");
        self.last = timestamp;
        let turn = event["turn"].as_u64().unwrap();
        let agent = event["agent_tool_use_id"].as_str();
        if let Some(agent) = agent {
            assert!(self.at_work.iter().any(|id| id == agent), "{event}");
        }
        match word(event, "type") {
            "queue_drained" => {
                assert!(agent.is_none(), "an agent's turn ends without: {event}");
                assert_eq!(self.open, 0, "{event}");
                self.drained.push(turn);
            }
            "batch_started" => assert!(!event["calls"].as_array().unwrap().is_empty()),
            kind => {
                assert!(
                    !self.drained.contains(&turn) || agent.is_some() || kind == "agent_progress",
                    "{event}"
                );
                self.of_call(kind, event);
            }
        }
    }

    fn of_call(&mut self, kind: &str, event: &Value) {
        let id = word(event, "tool_use_id").to_owned();
        let agent = event["agent_tool_use_id"].as_str().map(str::to_owned);
        // The turn in `agent_progress` is the agent's own; its call is the one that is at work.
        let turn = event["turn"].as_u64().unwrap();
        let key = if kind == "agent_progress" {
            let at_work = |(key, told): (&Key, &Told)| {
                let is_this = (&key.0, &key.2) == (&agent, &id) && told.is_at_work();
                is_this.then(|| key.clone())
            };
            self.calls.iter().find_map(at_work).unwrap()
        } else {
            (agent.clone(), turn, id.clone())
        };
        let told = self.calls.entry(key).or_default();
        told.take(kind, event);
        match kind {
            "tool_queued" => self.open += 1,
            "agent_started" => self.at_work.push(id),
            "agent_completed" => {
                let at = self.at_work.iter().position(|other| *other == id);
                self.at_work.remove(at.unwrap());
            }
            "result_written" => self.open -= 1,
            "tool_completed" | "tool_error" if agent.is_some() || !self.written => self.open -= 1,
            _ => {}
        }
    }
}

impl Told {
    fn is_at_work(&self) -> bool {
        let count = |kind: &str| self.types.iter().filter(|other| *other == kind).count();
        count("agent_started") > count("agent_completed")
    }

    fn has(&self, kind: &str) -> bool {
        self.types.iter().any(|other| other == kind)
    }

    fn take(&mut self, kind: &str, event: &Value) {
        let (before, state) = (&self.state, &event["state"]);
        let (was, now) = (word(before, "state"), word(state, "state"));
        assert!(follows(was, now), "{was} → {now}: {event}");
        let expected: &[&str] = match kind {
            "tool_queued" => &["wait"],
            "tool_started" | "tool_status" | "agent_started" | "agent_progress"
            | "agent_completed" => &["doing"],
            "tool_completed" if event["success"] == true => &["success"],
            "tool_completed" | "tool_error" => &["error"],
            "result_written" => &["success", "error"],
            other => panic!("{other} is no event of a call"),
        };
        assert!(expected.contains(&now), "{event}");
        // What was known is known: an input and a result don't change, and words stay until there are others.
        for member in ["params", "result", "tip", "progress"] {
            let lost = !before[member].is_null() && state[member].is_null();
            let begins_again = kind == "tool_started" && ["tip", "progress"].contains(&member);
            assert!(!lost || begins_again, "{member} is lost: {event}");
        }
        assert!(
            before["params"].is_null() || before["params"] == state["params"],
            "{event}"
        );
        let has_result = ["success", "error"].contains(&now);
        assert_eq!(state["result"].is_null(), !has_result, "{event}");
        match kind {
            "tool_queued" => word(event, "tool_name").clone_into(&mut self.name),
            "agent_started" | "agent_completed" => assert_eq!(word(event, "agent_name"), self.name),
            "agent_progress" => {
                assert!(self.is_at_work(), "{event}");
                let turn = event["turn"].as_u64().unwrap();
                assert!(turn <= event["max_turns"].as_u64().unwrap(), "{event}");
                self.turns.push(turn);
            }
            "tool_completed" | "tool_error" => word(event, "status").clone_into(&mut self.status),
            _ => {}
        }
        assert_eq!(word(event, "tool_name"), self.name, "{event}");
        self.types.push(kind.to_owned());
        self.state = state.clone();
    }

    /// The whole story, in its order.
    fn is_whole(&self) {
        let (name, types) = (&self.name, &self.types);
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
            self.has("agent_started"),
            self.has("agent_completed"),
            "{name}"
        );
        let counted: Vec<u64> = (1..=self.turns.len() as u64).collect();
        assert_eq!(self.turns, counted, "{name}");
    }
}
