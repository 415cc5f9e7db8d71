//! What clients send: the parameters of their requests and notifications.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::protocol::{ProtocolEra, ProtocolVersion};

/// Parameters of `initialize`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct InitializeParams {
    pub(crate) protocol_version: String,
    #[serde(default)]
    pub(crate) capabilities: Value,
    #[serde(default)]
    client_info: Value,
}

/// Parameters of `tools/call`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CallToolParams {
    pub(crate) name: String,
    pub(crate) arguments: Option<Box<RawValue>>,
    /// The answers to what an earlier result asked for.
    pub(crate) input_responses: Option<Value>,
    /// What that result had as its state.
    pub(crate) request_state: Option<String>,
}

/// Parameters of `notifications/cancelled`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CanceledParams<'t> {
    #[serde(borrow)]
    pub(crate) request_id: &'t RawValue,
    pub(crate) reason: Option<String>,
}

impl InitializeParams {
    /// Returns the name of the client, if it has one.
    pub(crate) fn client_name(&self) -> Option<String> {
        self.client_info["name"].as_str().map(str::to_owned)
    }
}

// Questions to the person at a client. In the legacy era, the server sends a request; in the modern one, the result of a call
// has the question, and the client makes the call again with the answer.

/// The method of a question.
pub(crate) const ELICITATION_METHOD: &str = "elicitation/create";

/// The name of the only question in a result.
pub(crate) const INPUT_KEY: &str = "approval";

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

// The events that a server receives from its client.

/// A call of a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ServedCallId(pub(crate) u64);

/// Something that a client wants.
#[derive(Debug)]
pub enum ServerEvent {
    /// A tool is to be called. Answer with [`answer_call`](super::ServerSession::answer_call).
    CallTool(ToolCall),
    /// A call is to be stopped. It needs no answer.
    CancelCall {
        /// Which call.
        call: ServedCallId,
        /// Why, if the client says so.
        reason: Option<String>,
    },
    /// The reply to a question that was sent to a person as a request. It needs no answer.
    AnswerQuestion {
        /// Which question.
        question: QuestionId,
        /// What was said.
        reply: ElicitationReply,
    },
}

/// A call that a client makes.
#[derive(Debug)]
pub struct ToolCall {
    /// The call, for its answer.
    pub call: ServedCallId,
    /// The id of the client's request, as JSON.
    pub request_id: String,
    /// The name of the tool, which is in the catalog.
    pub name: String,
    /// The arguments: any JSON, as it came.
    pub arguments: Box<RawValue>,
    /// Whether the client wants to know how far the call is.
    pub wants_progress: bool,
    /// Whether the client has been promised structured content: the list has an output schema for it.
    pub expects_structured_content: bool,
    /// What the client calls itself, if it does.
    pub client_name: Option<String>,
    /// How the person at the client can be asked about this call, if at all.
    pub elicitation: Option<ElicitationForm>,
    /// What the person said to the question in the result of an earlier call, which this one repeats.
    pub input_response: Option<InputResponse>,
}
