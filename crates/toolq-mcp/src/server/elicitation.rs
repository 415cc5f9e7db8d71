//! Questions to the person at a client. In the legacy era, the server sends a request; in the modern one, the result of a call
//! has the question, and the client makes the call again with the answer.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::protocol::{ProtocolEra, ProtocolVersion};

/// The method of a question.
pub(crate) const ELICITATION_METHOD: &str = "elicitation/create";

/// The name of the only question in a result.
const INPUT_KEY: &str = "approval";

/// A question, and the form to be filled in.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Elicitation {
    /// What the person reads.
    pub message: String,
    /// JSON Schema of an object with values that aren't objects or arrays.
    pub requested_schema: Value,
}

/// How a client can be asked about a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ElicitationForm {
    /// By a request of the server: [`ServerSession::ask`](super::ServerSession::ask).
    Request,
    /// By the result of the call: [`ServerSession::require_input`](super::ServerSession::require_input).
    Result,
}

/// A request of the server that has no answer yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct QuestionId(pub(crate) u64);

/// What a person said.
#[derive(Debug, Clone, PartialEq)]
pub enum ElicitationReply {
    /// The form was filled in. The client may not have checked it.
    Accepted(Map<String, Value>),
    /// The person said no.
    Declined,
    /// The person said nothing, or couldn't be asked.
    Canceled,
}

/// The answer to a question in the result of an earlier call, which comes with the same call again.
#[derive(Debug, Clone, PartialEq)]
pub struct InputResponse {
    /// What the earlier result had as its state. It may be forged.
    pub state: String,
    /// What the person said.
    pub reply: ElicitationReply,
}

/// The result of `elicitation/create`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ElicitationResult {
    action: String,
    content: Option<Map<String, Value>>,
}

/// The questions in a result.
pub(crate) type InputRequests<'a> = HashMap<&'static str, InputRequest<'a>>;

/// A question in a result.
#[derive(Serialize)]
pub(crate) struct InputRequest<'a> {
    method: &'static str,
    params: &'a Elicitation,
}

impl ElicitationForm {
    /// Returns how a client with these capabilities can be asked, if at all.
    pub(crate) fn of_client(
        version: ProtocolVersion,
        capabilities: Option<&Value>,
    ) -> Option<Self> {
        let elicitation = capabilities?.get("elicitation")?.as_object()?;
        // Without a word about forms or links, it is forms, as they came first.
        let takes_forms = elicitation.is_empty() || elicitation.contains_key("form");
        let form = match version.era() {
            ProtocolEra::Legacy => Self::Request,
            ProtocolEra::Modern => Self::Result,
        };
        (takes_forms && version >= ProtocolVersion::V2025_06_18).then_some(form)
    }
}

impl ElicitationReply {
    /// Reads the result of a question. A result that can't be understood counts as canceled.
    pub(crate) fn from_json(json: &str) -> Self {
        let result: ElicitationResult = serde_json::from_str(json).unwrap_or_default();
        match result.action.as_str() {
            "accept" => Self::Accepted(result.content.unwrap_or_default()),
            "decline" => Self::Declined,
            _ => Self::Canceled,
        }
    }
}

impl InputResponse {
    /// Reads the members of a call that is made again.
    pub(crate) fn from_params(state: Option<String>, responses: Option<&Value>) -> Option<Self> {
        let reply = responses?.get(INPUT_KEY)?;
        Some(Self {
            state: state?,
            reply: ElicitationReply::from_json(&reply.to_string()),
        })
    }
}

/// Returns the questions of a result.
pub(crate) fn input_requests(question: &Elicitation) -> InputRequests<'_> {
    let request = InputRequest {
        method: ELICITATION_METHOD,
        params: question,
    };
    HashMap::from([(INPUT_KEY, request)])
}
