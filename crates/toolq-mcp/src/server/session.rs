//! One connection: its handshake, if it has one, and its calls, each answered by the id of its request.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::de::IgnoredAny;
use serde_json::json;
use serde_json::value::RawValue;

use crate::framing::Outbox;
use crate::message::{
    CommonParams, KEPT_BYTES, Message, MessageStart, RequestId, RequestMeta, RpcError,
    parse_messages, read_optional_params, read_params,
};
use crate::protocol::{ProtocolEra, ProtocolVersion};
use crate::server::request::{
    CallToolParams, CanceledParams, ELICITATION_METHOD, Elicitation, ElicitationForm,
    ElicitationReply, InitializeParams, InputResponse, QuestionId, ServedCallId, ServerEvent,
    ToolCall,
};
use crate::server::result::{
    CallToolAnswer, ListToolsResult, ProgressParams, ToolCatalog, discover_result,
    initialize_result, input_required_result,
};
use crate::tool::CallToolResult;
use redact::Mask;

/// A server's side of a connection. Hand over every line that the client sends, and send every byte that
/// [`take_output`](Self::take_output) returns.
#[derive(Debug)]
pub struct ServerSession {
    catalog: Arc<ToolCatalog>,
    mask: Arc<Mask>,
    /// What `initialize` said. A modern client never sends it.
    legacy_client: Option<Caller>,
    next_question: u64,
    /// The requests to the client that it hasn't answered.
    questions: BTreeSet<QuestionId>,
    next_call: u64,
    running: BTreeMap<ServedCallId, UnansweredCall>,
    outbox: Outbox,
    noise_lines: u64,
}

/// A client, as it says of itself: in `initialize`, or with each call.
#[derive(Debug, Clone)]
struct Caller {
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
    pub fn new(catalog: Arc<ToolCatalog>) -> Self {
        Self {
            catalog,
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
        self.catalog.positions.contains_key(name)
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

// What the server tells the client about a call: its answer, questions, and how far it is.

impl ServerSession {
    /// Answers a call. It's not an error if the call was canceled meanwhile: it gets no answer then.
    pub fn answer_call(&mut self, call: ServedCallId, result: &CallToolResult) {
        if let Some(running) = self.running.remove(&call) {
            let catalog = Arc::clone(&self.catalog);
            let answer = CallToolAnswer::new(running.version, &catalog, result);
            self.outbox.result(&running.request, answer);
        }
    }

    /// Asks the person at the client of a call by a request. Returns `None` if the call is over.
    pub fn ask(&mut self, call: ServedCallId, question: &Elicitation) -> Option<QuestionId> {
        self.running.get(&call)?;
        let id = QuestionId(self.next_question);
        self.next_question += 1;
        self.questions.insert(id);
        self.outbox.request(id.0, ELICITATION_METHOD, question);
        Some(id)
    }

    /// Takes back a question without an answer. Nothing happens if it has one.
    pub fn withdraw_question(&mut self, question: QuestionId) {
        if self.questions.remove(&question) {
            let params = json!({"requestId": question.0});
            self.outbox
                .notification("notifications/cancelled", Some(params));
        }
    }

    /// Answers a call with a question. The client makes the call again with the reply, and with `state`.
    pub fn require_input(&mut self, call: ServedCallId, question: &Elicitation, state: &str) {
        if let Some(running) = self.running.remove(&call) {
            let catalog = Arc::clone(&self.catalog);
            let result = input_required_result(&catalog, question, state);
            self.outbox.result(&running.request, result);
        }
    }

    /// Answers a call that can't be made at all.
    pub fn refuse_call(&mut self, call: ServedCallId, error: RpcError) {
        if let Some(running) = self.running.remove(&call) {
            let error = error.masked(&self.mask);
            self.outbox.error(Some(&running.request), error);
        }
    }

    /// Says how far a call is, if the client wants to know and it has come further.
    pub fn report_progress(
        &mut self,
        call: ServedCallId,
        progress: f64,
        total: Option<f64>,
        message: Option<&str>,
    ) {
        let Some(running) = self.running.get_mut(&call) else {
            return;
        };
        let Some(progress_token) = &running.progress_token else {
            return;
        };
        if running.progress.is_some_and(|last| progress <= last) {
            return;
        }
        running.progress = Some(progress);
        let params = ProgressParams {
            progress_token,
            progress,
            total,
            message,
        };
        self.outbox
            .notification("notifications/progress", Some(params));
    }
}

// Serves the requests of the client: the handshake, the list of tools, and the calls, which are handed out.

impl ServerSession {
    fn on_request(
        &mut self,
        id: &RequestId,
        method: &str,
        params: Option<&RawValue>,
    ) -> Option<ServerEvent> {
        match self.serve_request(id, method, params) {
            Ok(event) => event,
            Err(error) => {
                self.outbox.error(Some(id), error.masked(&self.mask));
                None
            }
        }
    }

    /// Answers a request, or hands out the call that it makes.
    ///
    /// # Errors
    /// Why the request can't be served.
    fn serve_request(
        &mut self,
        id: &RequestId,
        method: &str,
        params: Option<&RawValue>,
    ) -> Result<Option<ServerEvent>, RpcError> {
        let catalog = Arc::clone(&self.catalog);
        if method == "initialize" {
            let params: InitializeParams = read_params(params)?;
            let version = ProtocolVersion::from_date(&params.protocol_version)
                .filter(|version| version.era() == ProtocolEra::Legacy)
                .unwrap_or(ProtocolVersion::LATEST_LEGACY);
            self.legacy_client = Some(Caller {
                version,
                name: params.client_name(),
                elicitation: ElicitationForm::of_client(version, Some(&params.capabilities)),
            });
            self.outbox.result(id, initialize_result(version, &catalog));
            return Ok(None);
        }
        let CommonParams { meta, cursor } = read_optional_params(params)?;
        let meta = meta.unwrap_or_default();
        let modern = meta.version()?;
        match (method, modern.or(self.legacy_version())) {
            ("ping", _) if modern.is_none() => self.outbox.result(id, json!({})),
            ("server/discover", _) if modern.is_some() => {
                self.outbox.result(id, discover_result(&catalog));
            }
            ("tools/list", Some(version)) => {
                if let Some(cursor) = cursor {
                    let message = format!("unknown cursor {}: the list has one page", cursor.get());
                    return Err(RpcError::new(RpcError::INVALID_PARAMS, message));
                }
                let result = ListToolsResult::new(version, &catalog);
                self.outbox.result(id, result);
            }
            ("tools/call", Some(version)) => {
                let params = read_params(params)?;
                let caller = self.caller(version, &meta);
                let progress_token = meta.progress_token.map(ToOwned::to_owned);
                return self
                    .begin_call(id, caller, progress_token, params)
                    .map(Some);
            }
            ("tools/list" | "tools/call" | "server/discover", _) => {
                let message = "_meta has no io.modelcontextprotocol/protocolVersion, and no initialize came before";
                return Err(RpcError::new(RpcError::INVALID_PARAMS, message));
            }
            _ => {
                let message = format!("this server doesn't serve {method}");
                return Err(RpcError::new(RpcError::METHOD_NOT_FOUND, message));
            }
        }
        Ok(None)
    }

    fn caller(&self, version: ProtocolVersion, meta: &RequestMeta<'_>) -> Caller {
        if let (ProtocolEra::Legacy, Some(client)) = (version.era(), &self.legacy_client) {
            return client.clone();
        }
        let capabilities = meta.client_capabilities();
        Caller {
            version,
            name: meta.client_name(),
            elicitation: ElicitationForm::of_client(version, capabilities.as_ref()),
        }
    }

    fn begin_call(
        &mut self,
        id: &RequestId,
        caller: Caller,
        progress_token: Option<Box<RawValue>>,
        params: CallToolParams,
    ) -> Result<ServerEvent, RpcError> {
        let catalog = Arc::clone(&self.catalog);
        let Some(tool) = catalog.tool(&params.name, caller.version.era()) else {
            let message = format!("unknown tool {}", params.name);
            return Err(RpcError::new(RpcError::INVALID_PARAMS, message));
        };
        let expects_structured_content = tool.output_schema.is_some();
        if self.find_call(id.as_json()).is_some() {
            let message = "a call with this id is still running";
            return Err(RpcError::new(RpcError::INVALID_REQUEST, message));
        }
        let call = ServedCallId(self.next_call);
        self.next_call += 1;
        let wants_progress = progress_token.is_some();
        self.running.insert(
            call,
            UnansweredCall {
                request: id.clone(),
                version: caller.version,
                progress_token,
                progress: None,
            },
        );
        Ok(ServerEvent::CallTool(ToolCall {
            call,
            request_id: id.as_json().to_owned(),
            name: params.name,
            arguments: params.arguments.unwrap_or_else(empty_object),
            wants_progress,
            expects_structured_content,
            client_name: caller.name,
            elicitation: caller.elicitation,
            input_response: InputResponse::from_params(
                params.request_state,
                params.input_responses.as_ref(),
            ),
        }))
    }
}

fn empty_object() -> Box<RawValue> {
    RawValue::from_string("{}".to_owned()).unwrap_or_default()
}
