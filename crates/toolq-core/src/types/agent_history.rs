//! Access to what earlier runs recorded about agents.

use crate::types::call::CallRef;
use crate::types::event_sink::EmitError;
use crate::types::resume_state::ResumeState;
use crate::types::usage::ReportedUsage;
use crate::types::verdict::CheckedCall;
use serde_json::value::RawValue;
use std::fmt::Debug;

/// What earlier runs recorded about the work of agents. The engine consults it before each step of an agent, so that a
/// resumed agent repeats nothing.
pub trait AgentHistory: Debug + Send + Sync {
    /// Returns what is known about a call made by an agent.
    ///
    /// # Errors
    /// The session log has a different call in its place, or its result can't be read. The error says why in one
    /// sentence.
    fn resume_state(&self, checked: &CheckedCall) -> Result<ResumeState, EmitError>;

    /// Returns the logged response of the model in turn `turn` (counted from 0) of the agent that works on `call`, if
    /// there is one.
    ///
    /// # Errors
    /// The session log has a response that can't be used. The error says why in one sentence.
    fn logged_response(
        &self,
        call: &CallRef,
        turn: usize,
    ) -> Result<Option<LoggedResponse>, EmitError>;

    /// Returns the logged token usage of the agent that works on `call` and of all agents below it, one entry per
    /// response, with the model that sent it.
    fn logged_usage(&self, call: &CallRef) -> Vec<(String, ReportedUsage)>;
}

/// A model's response from the session log.
#[derive(Debug, Clone)]
pub struct LoggedResponse {
    /// The body as received.
    pub body: Box<RawValue>,
    /// The model that responded, if known.
    pub model: Option<String>,
}
