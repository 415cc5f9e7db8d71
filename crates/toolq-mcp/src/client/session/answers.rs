//! What the answers and notifications of a server mean.

use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;

use crate::client::handshake::{DISCOVER_ID, HandshakeStep, INITIALIZE_ID, unreadable};
use crate::client::session::{
    ClientSession, NextPage, PendingCall, PendingRequest, ToolListPages, unreadable_list,
};
use crate::client::{CallError, SessionEvent};
use crate::message::{MessageStart, RequestId, RpcError};
use crate::protocol::{ProtocolEra, ProtocolVersion};
use crate::tool::{CallToolResult, ResultMembers};

/// How often a server may ask to repeat the request of one call.
const MAX_ROUNDS: u32 = 8;

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
    /// Answers `ping`. The client declares no capabilities, so a server must not ask for anything else.
    pub(super) fn answer_request(&mut self, id: &RequestId, method: &str) {
        if method != "ping" {
            let message = format!("this client doesn't serve {method}");
            self.refuse_request(id, RpcError::new(RpcError::METHOD_NOT_FOUND, message));
        } else if self.is_answering {
            self.outbox.result(id, json!({}));
        }
    }

    /// Answers a request of the server with an error.
    fn refuse_request(&mut self, id: &RequestId, error: RpcError) {
        if self.is_answering {
            self.outbox.error(Some(id), error);
        }
    }

    pub(super) fn on_response(
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

    pub(super) fn on_answer(
        &mut self,
        id: u64,
        result: Result<&RawValue, RpcError>,
    ) -> Option<SessionEvent> {
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
        let was_open = self.is_waiting_for(id);
        let step = if id == DISCOVER_ID {
            self.handshake.on_discover(result, &mut self.outbox)
        } else {
            self.handshake.on_initialize(result, &mut self.outbox)
        };
        match step {
            HandshakeStep::Waiting => {
                self.strays.late_answers += u64::from(!was_open);
                None
            }
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
            .map_err(|error| format!("the server refused to list its tools: {error}"))
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
        let era = self.version.map(ProtocolVersion::era);
        match CallResultKind::read(result, era) {
            Ok(CallResultKind::Complete(result)) => ended(Ok(result)),
            Ok(CallResultKind::InputRequired { requests, state }) => {
                call.rounds += 1;
                if requests > 0 || call.rounds == MAX_ROUNDS {
                    return ended(Err(CallError::InputRequired));
                }
                self.send_call(call, state);
                None
            }
            Err(error) => ended(Err(error)),
        }
    }

    pub(super) fn on_progress(&mut self, params: &RawValue) -> Option<SessionEvent> {
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
}

// The kinds of results that answer `tools/call`.

/// The result in an answer to `tools/call`.
enum CallResultKind<'t> {
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
    /// Reads a result. One without a kind is complete, as all are in the legacy era, which has no other kind.
    ///
    /// # Errors
    /// The result is malformed, or of an unknown kind.
    pub(crate) fn read(json: &'t RawValue, era: Option<ProtocolEra>) -> Result<Self, CallError> {
        let invalid = |error: serde_json::Error| CallError::InvalidAnswer(error.to_string());
        let members: ResultMembers<'t> = serde_json::from_str(json.get()).map_err(invalid)?;
        match members.result_type.as_deref() {
            None | Some("complete") => {
                Ok(Self::Complete(CallToolResult::from_members(&members, json)))
            }
            Some("input_required") if era == Some(ProtocolEra::Modern) => Ok(Self::InputRequired {
                requests: members.input_requests.map_or(0, |requests| requests.len()),
                state: members.request_state,
            }),
            Some(other) => Err(CallError::UnknownResultType(other.to_owned())),
        }
    }
}

// Answers that can't be read, which end what waits for them.

/// Why an answer can't be read.
enum AnswerFault {
    /// It is malformed, in this way.
    Malformed(String),
    /// It has so many bytes.
    TooLong(u64),
}

impl AnswerFault {
    fn into_call_error(self) -> CallError {
        match self {
            Self::Malformed(reason) => CallError::InvalidAnswer(reason),
            Self::TooLong(bytes) => CallError::TooLong(bytes),
        }
    }

    fn into_reason(self) -> String {
        match self {
            Self::Malformed(reason) => reason,
            Self::TooLong(bytes) => format!("it has {bytes} bytes, which is too long"),
        }
    }
}

impl ClientSession {
    /// Takes an answer that can't be read, for this reason.
    pub fn reject_answer(&mut self, request: u64, reason: String) -> Option<SessionEvent> {
        self.end_request(request, AnswerFault::Malformed(reason))
    }

    /// Takes the beginning of a line that is too long to be read. An answer fails what waits for it, and a request of the
    /// server is refused.
    pub fn receive_too_long(&mut self, start: &[u8], bytes: u64) -> Vec<SessionEvent> {
        let message = MessageStart::read(start);
        if let Some(MessageStart::Request(id)) = &message {
            self.strays.requests += 1;
            let error = RpcError::new(RpcError::INVALID_REQUEST, "the message is too long");
            self.refuse_request(id, error);
            return Vec::new();
        }
        let request = message.and_then(|message| message.answered_request());
        let event = request.and_then(|id| self.end_request(id, AnswerFault::TooLong(bytes)));
        self.strays.noise_lines += u64::from(event.is_none());
        event.into_iter().collect()
    }

    /// Ends a request whose answer can't be read.
    fn end_request(&mut self, request: u64, fault: AnswerFault) -> Option<SessionEvent> {
        match self.pending.remove(&request) {
            Some(PendingRequest::CallTool(call)) => Some(SessionEvent::CallEnded {
                call: call.id,
                result: Err(fault.into_call_error()),
            }),
            Some(PendingRequest::ListTools(_)) => {
                let error = unreadable_list(&fault.into_reason());
                Some(SessionEvent::ToolsListed(Err(error)))
            }
            // A server that answers like this doesn't know `server/discover`.
            None if request == DISCOVER_ID && self.give_up_probe() => None,
            None if self.is_waiting_for(request) => {
                self.has_failed = true;
                let method = if request == DISCOVER_ID {
                    "server/discover"
                } else {
                    "initialize"
                };
                let error = unreadable(method, &fault.into_reason());
                Some(SessionEvent::HandshakeFailed(error))
            }
            None => None,
        }
    }
}
