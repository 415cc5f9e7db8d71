//! One connection: its handshake, if it has one, and its calls, each answered by the id of its request.

mod replies;
mod requests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use redact::Mask;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;

use crate::framing::KEPT_BYTES;
use crate::message::{Message, MessageStart, RequestId, parse_messages};
use crate::outbox::Outbox;
use crate::protocol::ProtocolVersion;
use crate::rpc_error::RpcError;
use crate::server::catalog::SharedCatalog;
use crate::server::elicitation::{ElicitationForm, ElicitationReply, QuestionId};
use crate::server::event::{ServedCallId, ServerEvent};
use crate::server::request::CanceledParams;

/// A server's side of a connection. Hand over every line that the client sends, and send every byte that
/// [`take_output`](Self::take_output) returns.
#[derive(Debug)]
pub struct ServerSession {
    catalog: SharedCatalog,
    mask: Arc<Mask>,
    /// What `initialize` said. A modern client never sends it.
    legacy_client: Option<LegacyClient>,
    next_question: u64,
    /// The requests to the client that it hasn't answered.
    questions: BTreeSet<QuestionId>,
    next_call: u64,
    running: BTreeMap<ServedCallId, UnansweredCall>,
    outbox: Outbox,
    noise_lines: u64,
}

/// A client that began with `initialize`.
#[derive(Debug, Clone)]
struct LegacyClient {
    version: ProtocolVersion,
    name: Option<String>,
    elicitation: Option<ElicitationForm>,
}

/// A call without an answer.
#[derive(Debug)]
struct UnansweredCall {
    request: RequestId,
    version: ProtocolVersion,
    progress_token: Option<Box<RawValue>>,
    /// How far the last notification said the call is. Later ones must say more.
    progress: Option<f64>,
}

impl ServerSession {
    /// Begins a connection.
    pub fn new(catalog: impl Into<SharedCatalog>) -> Self {
        Self {
            catalog: catalog.into(),
            mask: Arc::default(),
            legacy_client: None,
            next_question: 0,
            questions: BTreeSet::new(),
            next_call: 0,
            running: BTreeMap::new(),
            outbox: Outbox::default(),
            noise_lines: 0,
        }
    }

    /// Masks secrets in errors, which repeat what the client sent. Ids and progress tokens go back unchanged, because the
    /// client finds its requests by them. The results of calls are sent as they are.
    #[must_use]
    pub fn with_mask(self, mask: Arc<Mask>) -> Self {
        Self { mask, ..self }
    }

    /// Returns the bytes that are to be sent now.
    pub fn take_output(&mut self) -> Vec<u8> {
        self.outbox.take()
    }

    /// Returns how many lines weren't messages. Those that don't begin like one get no answer: a client that prints to its server's
    /// stdin by mistake would otherwise get an error for every line.
    pub fn noise_lines(&self) -> u64 {
        self.noise_lines
    }

    /// Returns the version on which `initialize` agreed, if the client sent it.
    pub fn legacy_version(&self) -> Option<ProtocolVersion> {
        self.legacy_client.as_ref().map(|client| client.version)
    }

    /// Returns whether the client takes requests of the server that ask a person.
    pub fn takes_questions(&self) -> bool {
        let client = self.legacy_client.as_ref();
        client.is_some_and(|client| client.elicitation.is_some())
    }

    /// Returns whether the list has a tool of this name now.
    pub fn lists_tool(&self, name: &str) -> bool {
        self.catalog.current().has_tool(name)
    }

    /// Returns the calls without an answer, oldest first.
    pub fn running_calls(&self) -> impl Iterator<Item = ServedCallId> {
        self.running.keys().copied()
    }

    /// Takes a line from the client.
    pub fn receive(&mut self, line: &[u8]) -> Vec<ServerEvent> {
        if let Ok(messages) = parse_messages(line) {
            return self.receive_messages(messages);
        }
        let error = match serde_json::from_slice::<IgnoredAny>(line) {
            Ok(_) => RpcError::new(RpcError::INVALID_REQUEST, "this isn't a JSON-RPC message"),
            Err(error) => RpcError::new(RpcError::PARSE_ERROR, format!("invalid JSON: {error}")),
        };
        let start = &line[..line.len().min(KEPT_BYTES)];
        self.receive_unreadable(start, error).into_iter().collect()
    }

    /// Takes messages that were read already.
    pub fn receive_messages(&mut self, messages: Vec<Message<'_>>) -> Vec<ServerEvent> {
        let mut events = Vec::new();
        for message in messages {
            events.extend(match message {
                Message::Request { id, method, params } => self.on_request(&id, &method, params),
                Message::Notification { method, params } => self.on_notification(&method, params),
                Message::Response { id, result } => self.on_response(id.as_ref(), result.ok()),
            });
        }
        events
    }

    /// Takes the beginning of a line that is too long to be read.
    pub fn receive_too_long(&mut self, start: &[u8]) -> Option<ServerEvent> {
        let error = RpcError::new(RpcError::INVALID_REQUEST, "the message is too long");
        self.receive_unreadable(start, error)
    }

    /// Takes the beginning of a line that can't be read. A request is refused, as is what could be one: somebody may wait for its
    /// answer. A response that can't be read cancels its question.
    fn receive_unreadable(&mut self, start: &[u8], error: RpcError) -> Option<ServerEvent> {
        match MessageStart::read(start) {
            Some(MessageStart::Request(id)) => self.outbox.error(Some(&id), error),
            Some(MessageStart::Response(id)) => return self.on_response(Some(&id), None),
            None => {
                self.noise_lines += 1;
                if start.trim_ascii_start().starts_with(b"{") {
                    self.outbox.error(None, error);
                }
            }
        }
        None
    }

    fn on_response(
        &mut self,
        id: Option<&RequestId>,
        result: Option<&RawValue>,
    ) -> Option<ServerEvent> {
        let question = QuestionId(id?.as_number()?);
        if !self.questions.remove(&question) {
            return None;
        }
        // An error isn't a person's reply.
        let reply = result.map_or(ElicitationReply::Canceled, |result| {
            ElicitationReply::from_json(result.get())
        });
        Some(ServerEvent::AnswerQuestion { question, reply })
    }

    fn on_notification(&mut self, method: &str, params: Option<&RawValue>) -> Option<ServerEvent> {
        if method != "notifications/cancelled" {
            return None;
        }
        let params: CanceledParams<'_> = serde_json::from_str(params?.get()).ok()?;
        let call = self.find_call(params.request_id.get())?;
        self.running.remove(&call);
        Some(ServerEvent::CancelCall {
            call,
            reason: params.reason,
        })
    }

    /// Returns the running call of the request with this id.
    fn find_call(&self, request_id: &str) -> Option<ServedCallId> {
        let mut running = self.running.iter();
        running
            .find_map(|(call, running)| (running.request.as_json() == request_id).then_some(*call))
    }
}
