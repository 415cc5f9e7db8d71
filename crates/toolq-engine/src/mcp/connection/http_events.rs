//! What becomes of HTTP requests, as far as it matters to a connection and its calls.

use std::sync::atomic::Ordering;

use super::{CallReply, ConnectionTask};
use crate::mcp::transport::{HttpEvent, HttpFailure, Transport};
use toolq_core::types::{TransportError, TransportPhase};
use toolq_mcp::client::SessionEvent;
use toolq_mcp::{ProtocolEra, RpcError};

impl ConnectionTask {
    /// Takes what became of a request. Returns what that means for the session.
    ///
    /// # Errors
    /// Why the connection can't continue.
    pub(super) fn receive_http(&mut self, event: HttpEvent) -> Result<Vec<SessionEvent>, String> {
        let (request, events) = match event {
            HttpEvent::Message { request, body } => (request, self.session.receive(&body)),
            HttpEvent::Refused { request, error } if error.code == RpcError::HEADER_MISMATCH => {
                (request, self.refuse_headers(request, error))
            }
            HttpEvent::Refused { request, error } => {
                (request, self.session.receive_error(request, error))
            }
            HttpEvent::Unreadable { request, reason } => {
                let event = self.session.reject_answer(request, reason);
                (request, event.into_iter().collect())
            }
            HttpEvent::Ended {
                request,
                method,
                failure,
            } => {
                if self.session.is_waiting_for(request) {
                    self.end_request(request, &method, failure)?;
                }
                return Ok(Vec::new());
            }
        };
        if !self.session.is_waiting_for(request)
            && let Transport::Endpoint(endpoint) = &mut self.transport
        {
            endpoint.finish_exchange(request);
        }
        Ok(events)
    }

    /// Ends a request without an answer.
    ///
    /// # Errors
    /// Why the connection can't continue: the request wasn't a call.
    fn end_request(
        &mut self,
        request: u64,
        method: &str,
        failure: HttpFailure,
    ) -> Result<(), String> {
        if method == "server/discover"
            && is_of_older_server(&failure)
            && self.session.give_up_probe()
        {
            return Ok(());
        }
        if method != "tools/call" {
            return Err(match failure {
                HttpFailure::Transport(error) => {
                    let detail = error.detail.clone();
                    self.failure = Some(error);
                    detail
                }
                HttpFailure::Status { text, .. } => text,
                HttpFailure::SessionExpired => {
                    "the server doesn't know the session that it began".to_owned()
                }
            });
        }
        if matches!(failure, HttpFailure::SessionExpired) {
            self.expire("the server no longer knew the session");
        }
        let call = self.session.abandon_request(request);
        if let Some(pending) = call.and_then(|call| self.running.remove(&call)) {
            let _ = pending.reply.send(self.reply_of_failure(failure));
        }
        Ok(())
    }

    /// Ends a call whose headers the server has refused. Its tools have other headers than when they were listed, so the next
    /// call lists them again.
    fn refuse_headers(&mut self, request: u64, error: RpcError) -> Vec<SessionEvent> {
        let is_modern = self
            .identity
            .as_ref()
            .is_some_and(|server| server.version.era() == ProtocolEra::Modern);
        let call = is_modern
            .then(|| self.session.abandon_request(request))
            .flatten();
        let Some(call) = call else {
            return self.session.receive_error(request, error);
        };
        self.expire("the server wanted other headers than its tools had");
        if let Some(pending) = self.running.remove(&call) {
            self.note_use();
            let _ = pending.reply.send(CallReply::HeadersRefused(error));
        }
        Vec::new()
    }

    /// Refuses further calls, which need another connection. Calls that are running may still get their answers.
    fn expire(&mut self, why: &'static str) {
        self.expiry = why;
        self.state.is_expired.store(true, Ordering::SeqCst);
        if let Transport::Endpoint(endpoint) = &mut self.transport {
            endpoint.forget_session();
        }
    }

    fn reply_of_failure(&self, failure: HttpFailure) -> CallReply {
        let masked = |text: &str| self.mask.apply(text).into_owned();
        match failure {
            HttpFailure::Transport(error) => CallReply::Failed(TransportError {
                detail: masked(&error.detail),
                ..error
            }),
            HttpFailure::Status {
                status,
                retry_after,
                text,
            } => CallReply::Status {
                status,
                retry_after,
                text: masked(&text),
            },
            HttpFailure::SessionExpired => CallReply::SessionExpired,
        }
    }
}

/// Whether a server that answers `server/discover` like this may be one of the legacy era.
fn is_of_older_server(failure: &HttpFailure) -> bool {
    match failure {
        HttpFailure::Status { status, .. } => {
            (400..=599).contains(status) && !matches!(status, 401 | 403 | 407 | 429)
        }
        HttpFailure::Transport(error) => error.phase == TransportPhase::Body,
        HttpFailure::SessionExpired => false,
    }
}
