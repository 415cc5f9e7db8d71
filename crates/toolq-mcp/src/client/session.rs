//! One connection: its handshake, its lists and its calls, each request known by its number.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::call_result::CallToolResult;
use crate::client::error::{CallError, HandshakeError, ToolListError};
use crate::client::event::{CallId, SessionEvent, StrayCounts};
use crate::client::handshake::{DISCOVER_ID, Handshake, HandshakeStep, INITIALIZE_ID};
use crate::client::request_meta::RequestMeta;
use crate::client::tool_list::{ListToolsParams, NextPage, ToolListPages};
use crate::message::{Message, RequestId, find_broken_answer, find_response_id, parse_messages};
use crate::outbox::{EmptyObject, Outbox};
use crate::protocol::{Implementation, ProtocolPreference, ProtocolVersion};
use crate::rpc_error::RpcError;
use crate::text_repair::repair_text;

/// How often a server may ask to repeat the request of one call.
const MAX_ROUNDS: u32 = 8;

/// A client's side of a connection. Hand over every line that the server sends, and send every byte that
/// [`take_output`](Self::take_output) returns.
#[derive(Debug)]
pub struct ClientSession {
    handshake: Handshake,
    version: Option<ProtocolVersion>,
    has_failed: bool,
    next_id: u64,
    pending: HashMap<u64, PendingRequest>,
    outbox: Outbox,
    is_answering: bool,
    strays: StrayCounts,
}

/// A request without an answer.
#[derive(Debug)]
enum PendingRequest {
    ListTools(ToolListPages),
    CallTool(PendingCall),
}

/// A call without an answer.
#[derive(Debug)]
struct PendingCall {
    id: CallId,
    name: String,
    arguments: Box<RawValue>,
    idempotency_key: Option<String>,
    rounds: u32,
    /// How far the last progress notification said it is. Later ones must say more.
    progress: Option<f64>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct CallToolParams<'a> {
    name: &'a str,
    arguments: &'a RawValue,
    /// What the server asked to have back, byte for byte.
    #[serde(skip_serializing_if = "Option::is_none")]
    request_state: Option<&'a RawValue>,
    #[serde(rename = "_meta")]
    meta: RequestMeta<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct CancelledParams<'a> {
    request_id: u64,
    reason: &'a str,
}

/// The members that tell the kinds of results apart.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ResultKind<'t> {
    result_type: Option<String>,
    #[serde(borrow)]
    input_requests: Option<HashMap<String, &'t RawValue>>,
    #[serde(borrow)]
    request_state: Option<&'t RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ProgressParams<'t> {
    #[serde(borrow)]
    progress_token: &'t RawValue,
    progress: f64,
    total: Option<f64>,
    message: Option<String>,
}

impl ClientSession {
    /// Begins a connection with its handshake.
    pub fn new(preference: ProtocolPreference, client: Implementation) -> Self {
        let mut outbox = Outbox::default();
        Self {
            handshake: Handshake::begin(preference, client, &mut outbox),
            version: None,
            has_failed: false,
            next_id: INITIALIZE_ID + 1,
            pending: HashMap::new(),
            outbox,
            is_answering: true,
            strays: StrayCounts::default(),
        }
    }

    /// Returns the bytes that are to be sent now.
    pub fn take_output(&mut self) -> Vec<u8> {
        self.outbox.take()
    }

    /// Returns what the server sent that belongs to nothing.
    pub fn strays(&self) -> StrayCounts {
        self.strays
    }

    /// Tries the legacy era. To be called once the server has been silent for a while after its start, or its answer
    /// isn't one of the modern era. Returns whether the legacy era is being tried.
    pub fn give_up_probe(&mut self) -> bool {
        if self.version.is_some() || self.has_failed {
            return false;
        }
        self.handshake.give_up_probe(&mut self.outbox);
        self.handshake.is_initializing()
    }

    /// Asks for the server's tools, after [`SessionEvent::Ready`].
    pub fn list_tools(&mut self) {
        self.ask_for_tools(ToolListPages::default(), None);
    }

    /// Calls a tool, after [`SessionEvent::Ready`]. `arguments` must be an object.
    pub fn call_tool(
        &mut self,
        name: &str,
        arguments: Box<RawValue>,
        idempotency_key: Option<&str>,
    ) -> CallId {
        let id = CallId(self.next_id);
        let call = PendingCall {
            id,
            name: name.to_owned(),
            arguments,
            idempotency_key: idempotency_key.map(str::to_owned),
            rounds: 0,
            progress: None,
        };
        self.send_call(call, None);
        id
    }

    /// Cancels a call. It gets no [`SessionEvent::CallEnded`], even if the server answers it.
    pub fn cancel_call(&mut self, call: CallId, reason: &str) {
        let Some(request_id) = self.find_request(call) else {
            return;
        };
        self.pending.remove(&request_id);
        let params = CancelledParams { request_id, reason };
        self.outbox
            .notification("notifications/cancelled", Some(params));
    }

    /// Sets whether requests of the server are answered. A server that doesn't read what it is sent gets no more answers.
    pub fn set_answering(&mut self, is_answering: bool) {
        self.is_answering = is_answering;
    }

    /// Takes a line from the server.
    pub fn receive(&mut self, line: &[u8]) -> Vec<SessionEvent> {
        let repaired = repair_text(line);
        let line = repaired.as_deref().unwrap_or(line);
        let Ok(messages) = parse_messages(line) else {
            let broken = find_broken_answer(line);
            let event = broken.and_then(|(id, reason)| self.reject_answer(id, reason));
            self.strays.noise_lines += u64::from(event.is_none());
            return event.into_iter().collect();
        };
        let events = messages.into_iter().filter_map(|message| match message {
            Message::Request { id, method, .. } => {
                self.strays.requests += 1;
                self.answer_request(&id, &method);
                None
            }
            Message::Notification { method, params } => match (&*method, params) {
                ("notifications/progress", Some(params)) => self.on_progress(params),
                _ => None,
            },
            Message::Response { id, result } => self.on_response(id.as_ref(), result),
        });
        events.collect()
    }

    /// Takes an error that answers a request, from a transport that knows the request where the error doesn't name it.
    pub fn receive_error(&mut self, request: u64, error: RpcError) -> Vec<SessionEvent> {
        self.on_answer(request, Err(error)).into_iter().collect()
    }

    /// Returns whether a request has no answer yet.
    pub fn is_waiting_for(&self, request: u64) -> bool {
        let is_handshaking = self.version.is_none() && !self.has_failed;
        match request {
            DISCOVER_ID => is_handshaking && !self.handshake.is_initializing(),
            INITIALIZE_ID => is_handshaking,
            _ => self.pending.contains_key(&request),
        }
    }

    /// Forgets a request that will have no answer. Returns the call that it was for; there is no
    /// [`SessionEvent::CallEnded`] for it.
    pub fn abandon_request(&mut self, request: u64) -> Option<CallId> {
        match self.pending.remove(&request)? {
            PendingRequest::CallTool(call) => Some(call.id),
            PendingRequest::ListTools(_) => None,
        }
    }

    /// Takes an answer that can't be read, for this reason.
    pub fn reject_answer(&mut self, request: u64, reason: String) -> Option<SessionEvent> {
        match self.pending.remove(&request) {
            Some(PendingRequest::CallTool(call)) => Some(SessionEvent::CallEnded {
                call: call.id,
                result: Err(CallError::InvalidAnswer(reason)),
            }),
            Some(PendingRequest::ListTools(_)) => {
                let error = ToolListError::InvalidAnswer(reason);
                Some(SessionEvent::ToolsListed(Err(error)))
            }
            // Whoever answers like this doesn't know the question.
            None if request == DISCOVER_ID && self.give_up_probe() => None,
            None if self.is_waiting_for(request) => {
                self.has_failed = true;
                let method = if request == DISCOVER_ID {
                    "server/discover"
                } else {
                    "initialize"
                };
                let error = HandshakeError::InvalidAnswer { method, reason };
                Some(SessionEvent::HandshakeFailed(error))
            }
            None => None,
        }
    }

    /// Takes the beginning of a line that is too long to be read. It can only be an answer, which fails its call.
    pub fn receive_too_long(&mut self, start: &[u8], bytes: u64) -> Vec<SessionEvent> {
        let pending = find_response_id(start).and_then(|id| self.pending.remove(&id));
        match pending {
            Some(PendingRequest::CallTool(call)) => vec![SessionEvent::CallEnded {
                call: call.id,
                result: Err(CallError::TooLong(bytes)),
            }],
            Some(PendingRequest::ListTools(_)) => {
                let reason = format!("it has {bytes} bytes, which is too long");
                let error = ToolListError::InvalidAnswer(reason);
                vec![SessionEvent::ToolsListed(Err(error))]
            }
            None => {
                self.strays.noise_lines += 1;
                Vec::new()
            }
        }
    }

    /// Answers `ping`. The client declares no capabilities, so a server must not ask for anything else.
    fn answer_request(&mut self, id: &RequestId, method: &str) {
        if !self.is_answering {
            return;
        }
        if method == "ping" {
            self.outbox.result(id, EmptyObject {});
        } else {
            let message = format!("this client doesn't serve {method}");
            let error = RpcError::new(RpcError::METHOD_NOT_FOUND, message);
            self.outbox.error(Some(id), error);
        }
    }

    fn on_response(
        &mut self,
        id: Option<&RequestId>,
        result: Result<&RawValue, RpcError>,
    ) -> Option<SessionEvent> {
        let number = match id {
            Some(id) => id.as_number(),
            // A server that can't read a request doesn't know its id.
            None => self.find_only_request(),
        };
        let Some(number) = number else {
            self.strays.unknown_answers += 1;
            return None;
        };
        self.on_answer(number, result)
    }

    /// Returns the request without an answer, if there is just one.
    fn find_only_request(&self) -> Option<u64> {
        let mut handshake = [DISCOVER_ID, INITIALIZE_ID].into_iter();
        let handshake = handshake.find(|request| self.is_waiting_for(*request));
        let mut pending = self.pending.keys().copied();
        handshake.or_else(|| pending.next().filter(|_| pending.next().is_none()))
    }

    fn on_answer(&mut self, id: u64, result: Result<&RawValue, RpcError>) -> Option<SessionEvent> {
        if id == DISCOVER_ID || id == INITIALIZE_ID {
            return self.on_handshake(id, result);
        }
        match self.pending.remove(&id) {
            Some(PendingRequest::ListTools(pages)) => self.on_tools(pages, result),
            Some(PendingRequest::CallTool(call)) => self.on_call_result(call, result),
            None if id < self.next_id => {
                self.strays.late_answers += 1;
                None
            }
            None => {
                self.strays.unknown_answers += 1;
                None
            }
        }
    }

    fn on_handshake(
        &mut self,
        id: u64,
        result: Result<&RawValue, RpcError>,
    ) -> Option<SessionEvent> {
        if self.version.is_some() || self.has_failed {
            self.strays.late_answers += 1;
            return None;
        }
        let step = if id == DISCOVER_ID {
            self.handshake.on_discover(result, &mut self.outbox)
        } else {
            self.handshake.on_initialize(result, &mut self.outbox)
        };
        match step {
            HandshakeStep::Waiting => None,
            HandshakeStep::Ready(server) => {
                self.version = Some(server.version);
                Some(SessionEvent::Ready(server))
            }
            HandshakeStep::Failed(error) => {
                self.has_failed = true;
                Some(SessionEvent::HandshakeFailed(error))
            }
        }
    }

    fn on_tools(
        &mut self,
        mut pages: ToolListPages,
        result: Result<&RawValue, RpcError>,
    ) -> Option<SessionEvent> {
        let next = result
            .map_err(ToolListError::Refused)
            .and_then(|page| pages.add(page));
        let list = match next {
            Ok(NextPage::Ask(cursor)) => {
                self.ask_for_tools(pages, Some(&cursor));
                return None;
            }
            Ok(NextPage::Done(list)) => Ok(list),
            Err(error) => Err(error),
        };
        Some(SessionEvent::ToolsListed(list))
    }

    fn on_call_result(
        &mut self,
        mut call: PendingCall,
        result: Result<&RawValue, RpcError>,
    ) -> Option<SessionEvent> {
        let id = call.id;
        let ended = |result| Some(SessionEvent::CallEnded { call: id, result });
        let result = match result {
            Ok(result) => result,
            Err(error) => return ended(Err(CallError::Refused(error))),
        };
        let invalid = |error: serde_json::Error| Err(CallError::InvalidAnswer(error.to_string()));
        let kind: ResultKind<'_> = match serde_json::from_str(result.get()) {
            Ok(kind) => kind,
            Err(error) => return ended(invalid(error)),
        };
        match kind.result_type.as_deref() {
            None | Some("complete") => {
                let result: Result<CallToolResult, _> = serde_json::from_str(result.get());
                ended(result.or_else(invalid))
            }
            Some("input_required") => {
                let asks_nothing = kind
                    .input_requests
                    .is_none_or(|requests| requests.is_empty());
                call.rounds += 1;
                if !asks_nothing || call.rounds == MAX_ROUNDS {
                    return ended(Err(CallError::InputRequired));
                }
                self.send_call(call, kind.request_state);
                None
            }
            Some(other) => ended(Err(CallError::UnknownResultType(other.to_owned()))),
        }
    }

    fn on_progress(&mut self, params: &RawValue) -> Option<SessionEvent> {
        let params: ProgressParams<'_> = serde_json::from_str(params.get()).ok()?;
        let request_id: u64 = params.progress_token.get().parse().ok()?;
        let Some(PendingRequest::CallTool(call)) = self.pending.get_mut(&request_id) else {
            return None;
        };
        if call.progress.is_some_and(|last| params.progress <= last) {
            return None;
        }
        call.progress = Some(params.progress);
        Some(SessionEvent::Progress {
            call: call.id,
            progress: params.progress,
            total: params.total,
            message: params.message,
        })
    }

    fn ask_for_tools(&mut self, pages: ToolListPages, cursor: Option<&str>) {
        let id = self.take_id();
        let params = ListToolsParams {
            meta: RequestMeta::new(self.request_version(), self.handshake.client()),
            cursor,
        };
        self.outbox.request(id, "tools/list", params);
        self.pending.insert(id, PendingRequest::ListTools(pages));
    }

    /// Sends the request of a call, with what the server asked to have back if it is repeated.
    fn send_call(&mut self, call: PendingCall, request_state: Option<&RawValue>) {
        let id = self.take_id();
        let mut meta = RequestMeta::new(self.request_version(), self.handshake.client());
        meta.progress_token = Some(id);
        meta.idempotency_key = call.idempotency_key.as_deref();
        let params = CallToolParams {
            name: &call.name,
            arguments: &call.arguments,
            request_state,
            meta,
        };
        self.outbox.request(id, "tools/call", params);
        self.pending.insert(id, PendingRequest::CallTool(call));
    }

    /// Returns the request that a call waits for.
    fn find_request(&self, call: CallId) -> Option<u64> {
        let is_of_call = |request: &PendingRequest| matches!(request, PendingRequest::CallTool(pending) if pending.id == call);
        let mut pending = self.pending.iter();
        pending.find_map(|(id, request)| is_of_call(request).then_some(*id))
    }

    /// Returns the version of requests.
    fn request_version(&self) -> ProtocolVersion {
        self.version.unwrap_or(ProtocolVersion::LATEST_LEGACY)
    }

    fn take_id(&mut self) -> u64 {
        self.next_id += 1;
        self.next_id - 1
    }
}
