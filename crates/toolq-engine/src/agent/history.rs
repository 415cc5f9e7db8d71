//! An agent goes on where an earlier run left it: what its model answered is not asked for again, and what is known of
//! its calls goes with them. Without a run to resume, nothing is known.

use crate::agent::conversation::Conversation;
use crate::agent::error::Broken;
use toolq_core::text::clipped;
use toolq_core::transcript::response;
use toolq_core::types::{
    CallRef, Checked, Invocation, Outcome, Past, Refused, Response, Turn, Verdict,
};

/// Characters of an id.
const MAX_ID: usize = 128;

impl Conversation<'_> {
    /// The answer of the turn of this number, if an earlier run heard it.
    ///
    /// # Errors
    /// It did, and the answer can't be had: the agent can't go on, and must not begin anew.
    pub(crate) fn remembered(&self, number: usize) -> Result<Option<(Response, Turn)>, Broken> {
        let Some(memory) = &self.agents.memory else {
            return Ok(None);
        };
        let stuck = |refused| stuck(refused, &self.desk.call);
        let Some(told) = memory.told(&self.desk.call, number).map_err(stuck)? else {
            return Ok(None);
        };
        let (mut response, turn) =
            response(self.backing.api, told.body.get(), number).map_err(|_| {
                let why = "the session log has an answer of another API than that of this agent";
                stuck(Refused(why.to_owned()))
            })?;
        response.model = response.model.or(told.model);
        Ok(Some((response, turn)))
    }

    /// What earlier runs made of a call. What an agent that has its answer took of the budgets of this one is taken from
    /// them once more.
    ///
    /// # Errors
    /// It isn't the call that the log has in its place, or its answer can't be had. Nothing of its turn may run.
    pub(crate) fn past(&self, checked: &Checked) -> Result<Past, Broken> {
        let Some(memory) = &self.agents.memory else {
            return Ok(Past::None);
        };
        let past = memory.past(checked);
        let past = past.map_err(|refused| stuck(refused, &self.desk.call))?;
        let is_agents = matches!(&checked.verdict, Verdict::Accepted(accepted)
            if matches!(accepted.invocation, Some(Invocation::Agent(_))));
        if let (Past::Answered(_), true) = (&past, is_agents) {
            let call = CallRef::new(&checked.call, None);
            for (model, tokens) in memory.taken(&call) {
                let price = self.kit.tools.prices.of(&model);
                self.around.purse.take(&model, tokens, price);
            }
        }
        Ok(past)
    }
}

/// The agent was started before, and nothing of it is done in this run. Who runs it has two ways out.
fn stuck(Refused(why): Refused, call: &CallRef) -> Broken {
    let id = clipped(&call.tool_use_id, MAX_ID);
    Broken::Outcome(Outcome::LogRefused(format!(
        "{why}. `--new` begins anew; `toolq log resolve {id} --done --result TEXT` gives it a result"
    )))
}
