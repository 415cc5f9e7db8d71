//! The kinds of results that answer `tools/call`.

use serde_json::value::RawValue;

use crate::call_result::{CallToolResult, ResultMembers};
use crate::client::CallError;

/// The result in an answer to `tools/call`.
pub(crate) enum CallResultKind<'t> {
    /// The call has ended.
    Complete(CallToolResult),
    /// The call must be made again to get an answer.
    InputRequired {
        /// How much the server asks the client for.
        requests: usize,
        /// What the server asks to have back.
        state: Option<&'t RawValue>,
    },
}

impl<'t> CallResultKind<'t> {
    /// Reads a result. One without a kind is complete, as all were before there were kinds.
    ///
    /// # Errors
    /// The result is malformed, or of an unknown kind.
    pub(crate) fn read(json: &'t RawValue) -> Result<Self, CallError> {
        let invalid = |error: serde_json::Error| CallError::InvalidAnswer(error.to_string());
        let members: ResultMembers<'t> = serde_json::from_str(json.get()).map_err(invalid)?;
        match members.result_type.as_deref() {
            None | Some("complete") => {
                let result = CallToolResult::from_members(&members).map_err(invalid)?;
                Ok(Self::Complete(result))
            }
            Some("input_required") => Ok(Self::InputRequired {
                requests: members.input_requests.map_or(0, |requests| requests.len()),
                state: members.request_state,
            }),
            Some(other) => Err(CallError::UnknownResultType(other.to_owned())),
        }
    }
}
