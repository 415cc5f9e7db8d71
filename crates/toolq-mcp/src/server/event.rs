//! The events that a server receives from its client.

use serde_json::value::RawValue;

use crate::server::elicitation::{ElicitationForm, ElicitationReply, InputResponse, QuestionId};

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
    /// The client's `traceparent` and `tracestate`, as it sent them in `_meta`.
    pub trace: Option<(String, Option<String>)>,
    /// How the person at the client can be asked about this call, if at all.
    pub elicitation: Option<ElicitationForm>,
    /// What the person said to the question in the result of an earlier call, which this one repeats.
    pub input_response: Option<InputResponse>,
}
