//! Resumes an agent where an earlier run left it. Responses that the earlier run received aren't requested again, and
//! what it recorded about the agent's calls decides whether they run.

use crate::agent::conversation::AgentConversation;
use crate::agent::error::AgentError;
use toolq_core::text::{quote_for_shell, truncate};
use toolq_core::transcript::parse_response;
use toolq_core::types::{
    CallRef, CheckedCall, EmitError, Invocation, ModelResponse, Outcome, ResumeState, Turn, Verdict,
};

/// The maximum length of an id in a message.
const MAX_ID_CHARS: usize = 128;

impl AgentConversation<'_> {
    /// Returns the response of the turn with this number, if an earlier run received it.
    ///
    /// # Errors
    /// An earlier run received a response that can't be restored. The agent can't continue, and must not start over.
    pub(crate) fn logged_response(
        &self,
        turn_number: usize,
    ) -> Result<Option<(ModelResponse, Turn)>, AgentError> {
        let Some(history) = &self.runner.history else {
            return Ok(None);
        };
        let to_error = |refused| cannot_resume(refused, &self.dispatcher.call);
        let Some(logged) = history
            .logged_response(&self.dispatcher.call, turn_number)
            .map_err(to_error)?
        else {
            return Ok(None);
        };
        let (mut response, turn) = parse_response(self.backing.api, logged.body.get(), turn_number)
            .map_err(|_| {
                let why = "the session log has a response in the format of a different API than this agent's";
                to_error(EmitError(why.to_owned()))
            })?;
        response.model = response.model.or(logged.model);
        Ok(Some((response, turn)))
    }

    /// Returns what earlier runs recorded about a call. If it is a call of another agent that already has its answer,
    /// charges what that agent used to the budgets of this one again.
    ///
    /// # Errors
    /// The log has a different call in this place, or its answer can't be restored. No call of the turn may run.
    pub(crate) fn resume_state(&self, checked: &CheckedCall) -> Result<ResumeState, AgentError> {
        let Some(history) = &self.runner.history else {
            return Ok(ResumeState::NotStarted);
        };
        let resume_state = history
            .resume_state(checked)
            .map_err(|refused| cannot_resume(refused, &self.dispatcher.call))?;
        let is_agent_call = matches!(&checked.verdict, Verdict::Accepted(accepted)
            if matches!(accepted.invocation, Some(Invocation::Agent(_))));
        if let (ResumeState::Answered(_), true) = (&resume_state, is_agent_call) {
            let call = CallRef::new(&checked.call, None);
            for (model, tokens) in history.logged_usage(&call) {
                let price = self.toolset.tools.prices.for_model(&model);
                self.scope
                    .budget_meter
                    .record_response(&model, tokens, price);
            }
        }
        Ok(resume_state)
    }
}

/// Returns the error for an agent that was started by an earlier run and can't be resumed. It names the two ways out.
fn cannot_resume(EmitError(why): EmitError, call: &CallRef) -> AgentError {
    let id = truncate(&call.tool_use_id, MAX_ID_CHARS);
    let id = quote_for_shell(&id);
    AgentError::Outcome(Outcome::LogRefused(format!(
        "{why}. Start over with `--new`, or set a result: `toolq log resolve {id}`, adding `--done --result TEXT`"
    )))
}
