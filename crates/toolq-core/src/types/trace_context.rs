//! Where the calls of a run are in a distributed trace, by the W3C recommendation Trace Context.

use sha2::{Digest, Sha256};

use crate::types::call::CallRef;
use crate::types::traceparent::Traceparent;

/// The trace of a run. Its ids follow from the task and the position of each call, so that a call has the same span in every run of
/// its task.
#[derive(Debug, Clone)]
pub struct TraceContext {
    task: String,
    session: String,
    trace_id: u128,
    parent: Option<Traceparent>,
}

/// The place of a call in a trace, for the program, server or service that does its work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallTrace {
    /// The span of the call, in the form of the recommendation.
    pub traceparent: String,
    /// What other systems keep in the trace.
    pub tracestate: Option<String>,
}

/// Turn and position of a call, followed by those of the agent's call that made it, and so on.
pub type CallPath = Vec<(usize, usize)>;

impl TraceContext {
    /// The trace of the session `session` of a task. Without a parent, the task is a trace of its own.
    pub fn new(task: &str, session: &str, parent: Option<Traceparent>) -> Self {
        let own_id = || {
            let digest = Sha256::digest(task);
            let mut bytes = [0; 16];
            bytes.copy_from_slice(&digest[..16]);
            u128::from_be_bytes(bytes).max(1)
        };
        Self {
            task: task.to_owned(),
            session: session.to_owned(),
            trace_id: parent
                .as_ref()
                .map_or_else(own_id, |parent| parent.trace_id),
            parent,
        }
    }

    /// Returns the trace of a turn whose calls were requested in the span `parent`.
    #[must_use]
    pub fn of_turn(&self, parent: &Traceparent) -> Self {
        Self {
            trace_id: parent.trace_id,
            parent: Some(parent.clone()),
            ..self.clone()
        }
    }

    /// Returns the id of the trace.
    pub fn trace_id(&self) -> u128 {
        self.trace_id
    }

    /// Returns the id of the session.
    pub fn session(&self) -> &str {
        &self.session
    }

    /// Returns whether the trace is sampled: whether the process that began it wants its spans.
    pub fn is_sampled(&self) -> bool {
        self.parent.as_ref().is_none_or(|parent| parent.is_sampled)
    }

    /// Returns the `tracestate` of the trace, if it has one.
    pub fn tracestate(&self) -> Option<&str> {
        self.parent.as_ref()?.tracestate.as_deref()
    }

    /// Returns the span within which toolq was started.
    pub fn parent_span_id(&self) -> Option<u64> {
        Some(self.parent.as_ref()?.span_id)
    }

    /// Returns the span of the session.
    pub fn session_span_id(&self) -> u64 {
        self.span_id("session", &[&self.session])
    }

    /// Returns the span of a call.
    pub fn call_span_id(&self, path: &[(usize, usize)]) -> u64 {
        self.span_id("call", &[&path_text(path)])
    }

    /// Returns the span of the agent that works on a call.
    pub fn agent_span_id(&self, path: &[(usize, usize)]) -> u64 {
        self.span_id("agent", &[&path_text(path)])
    }

    /// Returns the span of a model's response to that agent, by the agent's turn.
    pub fn response_span_id(&self, path: &[(usize, usize)], turn: usize) -> u64 {
        self.span_id("response", &[&path_text(path), &turn.to_string()])
    }

    /// Returns the span that a call belongs to: that of the agent that made it, or the session's.
    pub fn parent_of_call(&self, path: &[(usize, usize)]) -> u64 {
        match path {
            [_, agent @ ..] if !agent.is_empty() => self.agent_span_id(agent),
            _ => self.session_span_id(),
        }
    }

    /// Returns what a call passes on to what it runs.
    pub fn for_call(&self, call: &CallRef) -> CallTrace {
        let parent = Traceparent {
            trace_id: self.trace_id,
            span_id: self.call_span_id(&call.path()),
            is_sampled: self.is_sampled(),
            tracestate: None,
        };
        CallTrace {
            traceparent: parent.to_string(),
            tracestate: self.tracestate().map(str::to_owned),
        }
    }

    fn span_id(&self, kind: &str, parts: &[&str]) -> u64 {
        let mut hasher = Sha256::new_with_prefix(&self.task);
        for part in [kind].iter().chain(parts) {
            hasher.update(b"\0");
            hasher.update(part);
        }
        let digest = hasher.finalize();
        let mut bytes = [0; 8];
        bytes.copy_from_slice(&digest[..8]);
        u64::from_be_bytes(bytes).max(1)
    }
}

fn path_text(path: &[(usize, usize)]) -> String {
    let steps = path
        .iter()
        .map(|(turn, position)| format!("{turn}.{position}"));
    steps.collect::<Vec<_>>().join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_differ_by_what_they_are_of_and_not_by_the_session() {
        let first = TraceContext::new("task", "one", None);
        let second = TraceContext::new("task", "two", None);
        assert_eq!(first.trace_id(), second.trace_id());
        assert_eq!(
            first.call_span_id(&[(0, 1)]),
            second.call_span_id(&[(0, 1)])
        );
        assert_ne!(first.session_span_id(), second.session_span_id());
        let ids = [
            first.session_span_id(),
            first.call_span_id(&[(0, 1)]),
            first.call_span_id(&[(1, 0)]),
            first.call_span_id(&[(0, 1), (0, 0)]),
            first.agent_span_id(&[(0, 1)]),
            first.response_span_id(&[(0, 1)], 0),
            first.response_span_id(&[(0, 1)], 1),
        ];
        for (index, id) in ids.iter().enumerate() {
            assert!(!ids[..index].contains(id), "{index}");
        }
        assert_eq!(first.parent_of_call(&[(0, 1)]), first.session_span_id());
        assert_eq!(
            first.parent_of_call(&[(2, 0), (0, 1)]),
            first.agent_span_id(&[(0, 1)])
        );
    }
}
