//! What `agent` and `call` share: a session with one call, which a person types.

mod answer;
mod input;

pub(crate) use answer::{SingleAnswer, answer_text};
pub(crate) use input::{InputText, check_accepted, read_call};

use crate::output::CommandError;
use crate::session::{InputState, RunSession};
use toolq_core::types::{Call, CheckedCall};

/// Runs the `describe` programs that the call needs, checks the call, and adds what earlier runs recorded about it.
///
/// # Errors
/// The input is invalid, or the log has another call.
pub(crate) async fn prepare_call(
    session: &mut RunSession<'_>,
    call: Call,
) -> Result<CheckedCall, CommandError> {
    let call = [call];
    session.describe_tools(&call).await;
    let [call] = call;
    let mut checked = session.checker.check_call(call);
    check_accepted(&checked)?;
    checked.resume_state = session.resume.resume_state(&checked, InputState::Open)?;
    Ok(checked)
}
