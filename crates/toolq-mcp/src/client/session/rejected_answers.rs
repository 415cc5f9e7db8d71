//! Answers that can't be read, which end what waits for them.

use super::{ClientSession, PendingRequest};
use crate::client::error::{CallError, HandshakeError, ToolListError};
use crate::client::event::SessionEvent;
use crate::client::handshake::DISCOVER_ID;
use crate::message::MessageStart;
use crate::rpc_error::RpcError;

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
                let error = ToolListError::InvalidAnswer(fault.into_reason());
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
                let error = HandshakeError::InvalidAnswer {
                    method,
                    reason: fault.into_reason(),
                };
                Some(SessionEvent::HandshakeFailed(error))
            }
            None => None,
        }
    }
}
