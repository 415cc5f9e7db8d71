//! What a log shows, read naively from its JSON.

use std::collections::HashMap;

use serde_json::Value;
use toolq_core::types::{Effect, ResumeState, Tool};
use toolq_log::TaskHistory;
use toolq_testing::{accepted_call, sample_tool};

/// Statuses of a `tool_result` after which a call may still run.
const OPEN_STATUSES: [&str; 10] = [
    "unknown_tool",
    "invalid_input",
    "invalid_arguments",
    "truncated",
    "response_refused",
    "path_outside_root",
    "too_deep",
    "not_concurrency_safe",
    "interrupted",
    "over_budget",
];

/// The calls of the input in the last task of a log.
#[derive(Default)]
pub(crate) struct LoggedFacts {
    task: Value,
    /// The number of each turn of the input, by the id of its record.
    turns: HashMap<String, u64>,
    calls: HashMap<String, LoggedFact>,
}

struct LoggedFact {
    turn: u64,
    position: u64,
    is_agent: bool,
    is_done: bool,
    started_as: Option<Value>,
}

impl LoggedFacts {
    pub(crate) fn read(log: &[u8]) -> Self {
        let mut facts = Self::default();
        let whole = log
            .iter()
            .rposition(|byte| *byte == b'\n')
            .map_or(0, |end| end + 1);
        for line in log[..whole].split(|byte| *byte == b'\n') {
            if let Ok(record) = serde_json::from_slice::<Value>(line) {
                facts.apply(&record);
            }
        }
        facts
    }

    fn apply(&mut self, record: &Value) {
        let id = record["id"].as_str().unwrap_or_default().to_owned();
        let parent = record["parentId"].as_str().unwrap_or_default();
        let metadata = &record["metadata"];
        match record["type"].as_str().unwrap_or_default() {
            "session" => {
                let resumes = &metadata["resumes"];
                if resumes.is_null() || *resumes != self.task {
                    let task = if resumes.is_null() {
                        record["id"].clone()
                    } else {
                        resumes.clone()
                    };
                    *self = Self {
                        task,
                        ..Self::default()
                    };
                }
            }
            "turn" if metadata["agent"].is_null() => {
                self.turns
                    .extend(metadata["turn"].as_u64().map(|turn| (id, turn)));
            }
            "tool_call" => {
                if let (Some(turn), Some(position)) =
                    (self.turns.get(parent), metadata["position"].as_u64())
                {
                    let fact = LoggedFact {
                        turn: *turn,
                        position,
                        is_agent: false,
                        is_done: false,
                        started_as: None,
                    };
                    self.calls.insert(id, fact);
                }
            }
            kind => {
                if let Some(call) = self.calls.get_mut(parent) {
                    call.apply(kind, metadata);
                }
            }
        }
    }

    /// Checks that the history runs nothing again that is done, and no `write` call that may be done.
    pub(crate) fn check(&self, history: &TaskHistory) {
        for call in self.calls.values() {
            let is_ambiguous = self
                .calls
                .values()
                .filter(|other| (other.turn, other.position) == (call.turn, call.position))
                .count()
                > 1;
            let numbers_of_turn = self
                .turns
                .values()
                .filter(|turn| **turn == call.turn)
                .count();
            if is_ambiguous || numbers_of_turn > 1 || call.is_agent {
                continue;
            }
            call.check(history);
        }
    }
}

impl LoggedFact {
    fn apply(&mut self, kind: &str, metadata: &Value) {
        match kind {
            "tool_start" => {
                self.is_done = false;
                self.is_agent |= !metadata["agent"].is_null();
                self.started_as = Some(metadata["effect"].clone());
            }
            "tool_result" => {
                let is_open = metadata["status"]
                    .as_str()
                    .is_none_or(|status| OPEN_STATUSES.contains(&status));
                self.is_done |= !is_open;
            }
            // It was canceled in time, or a probe or a person knows more than the log.
            "tool_skipped" | "probe_end" | "resolve" => {
                self.started_as = None;
                self.is_done |= kind == "resolve" && metadata["done"] == true;
            }
            _ => {}
        }
    }

    fn check(&self, history: &TaskHistory) {
        let (Ok(turn), Ok(position)) = (usize::try_from(self.turn), usize::try_from(self.position))
        else {
            return;
        };
        let tool = Tool {
            effect: Effect::Read,
            ..sample_tool("any")
        };
        let mut checked = accepted_call(position, tool, true, "{}");
        checked.call.turn = turn;
        let Ok(state) = history.resume_state(&checked) else {
            return; // Its result can't be read, which stops the run.
        };
        let runs = matches!(
            state,
            ResumeState::NotStarted | ResumeState::Started(_) | ResumeState::NeedsProbe(_)
        );
        assert!(
            !(runs && self.is_done),
            "a call that is done would run: {state:?}"
        );
        let may_be_done = self
            .started_as
            .as_ref()
            .is_some_and(|effect| effect == "write");
        assert!(
            !(runs && may_be_done),
            "a call that may be done would run: {state:?}"
        );
    }
}
