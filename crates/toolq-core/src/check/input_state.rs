//! What the input says about a call, unless the memory knows more.

use crate::types::{CallOutput, DoubtCause, Effect, InputState, Outcome, Verdict};

/// Returns the outcome of a call of which only the input says anything. `None` if it may run.
pub(crate) fn outcome_in_input(verdict: &Verdict, input_state: InputState) -> Option<Outcome> {
    let is_doubtful = match (input_state, verdict) {
        (InputState::Open, _) => false,
        (InputState::Started, Verdict::Accepted(accepted)) => accepted.tool.effect == Effect::Write,
        (InputState::Started, Verdict::Rejected(_)) | (InputState::InDoubt, _) => true,
    };
    is_doubtful.then(|| Outcome::InDoubt {
        cause: DoubtCause::EndNotLogged(None),
        output: CallOutput::default(),
    })
}
