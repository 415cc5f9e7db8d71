//! What the messages of a server, and the ends of HTTP requests, mean to a connection.

use std::mem;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use tokio::sync::oneshot;

use super::{ConnectionTask, ListReply, Phase};
use crate::attempt::Progress;
use crate::mcp::announcement::ServerAnnouncement;
use crate::mcp::incoming::{CallReply, Incoming};
use crate::mcp::transport::Transport;
use toolq_core::types::TransportPhase;
use toolq_mcp::client::{SessionEvent, ToolList};
use toolq_mcp::{ProtocolEra, RpcError};

impl ConnectionTask {
    /// # Errors
    /// Why the connection can't continue.
    pub(super) fn receive(&mut self, incoming: Incoming) -> Result<(), String> {
        self.session.set_answering(!self.transport.is_behind());
        let events = self.read(incoming)?;
        for event in events {
            match event {
                SessionEvent::Ready(identity) => {
                    let is_legacy = identity.version.era() == ProtocolEra::Legacy;
                    self.state.is_legacy.store(is_legacy, Ordering::SeqCst);
                    let needs_tools = self.transport.agree_on(identity.version);
                    self.identity = Some(identity);
                    if needs_tools || self.compares_tools || !self.listeners.is_empty() {
                        self.session.list_tools();
                    } else {
                        self.begin_waiting_calls();
                    }
                }
                SessionEvent::HandshakeFailed(error) => return Err(error),
                SessionEvent::ToolsListed(list) => {
                    let list =
                        list.map_err(|error| format!("its tools can't be listed: {error}"))?;
                    self.take_list(list);
                }
                SessionEvent::CallEnded { call, result } => {
                    if let Some(pending) = self.running.remove(&call) {
                        self.note_use();
                        self.phase = Phase::Proven;
                        let _ = pending.reply.send(CallReply::Answered(result));
                    }
                }
                SessionEvent::Progress {
                    call,
                    progress,
                    total,
                    message,
                } => {
                    if let Some(pending) = self.running.get(&call) {
                        pending.progress.send(Progress {
                            message: message.map(|text| self.mask.apply(&text).into_owned()),
                            fraction: total.and_then(|total| fraction(progress, total)),
                            ..Progress::default()
                        });
                    }
                }
            }
        }
        Ok(())
    }

    pub(super) fn begin_listing(&mut self, reply: oneshot::Sender<ListReply>) {
        if let Some(announcement) = &self.announcement {
            let _ = reply.send(Ok(Arc::clone(announcement)));
            return;
        }
        // A server that is ready and whose tools aren't compared hasn't been asked yet.
        if self.phase >= Phase::Ready && self.listeners.is_empty() {
            self.session.list_tools();
        }
        self.listeners.push(reply);
    }

    fn take_list(&mut self, mut list: ToolList) {
        self.transport.learn_tools(&mut list);
        let announcement = ServerAnnouncement::new(self.identity.as_ref(), list, &self.mask);
        let announcement = Arc::new(announcement);
        for listener in self.listeners.drain(..) {
            let _ = listener.send(Ok(Arc::clone(&announcement)));
        }
        self.announcement = Some(announcement);
        self.begin_waiting_calls();
    }

    fn begin_waiting_calls(&mut self) {
        self.phase = self.phase.max(Phase::Ready);
        for call in mem::take(&mut self.waiting) {
            self.begin_call(call);
        }
    }
}

/// Returns how far a call is, from 0 to 1. A server may say anything.
fn fraction(progress: f64, total: f64) -> Option<f64> {
    let fraction = progress / total;
    fraction.is_finite().then(|| fraction.clamp(0.0, 1.0))
}

// What becomes of HTTP requests, as far as it matters to a connection and its calls.

impl ConnectionTask {
    /// Returns what something that came means for the session.
    ///
    /// # Errors
    /// Why the connection can't continue.
    fn read(&mut self, incoming: Incoming) -> Result<Vec<SessionEvent>, String> {
        let (request, events) = match incoming {
            Incoming::Line(line) => return Ok(self.session.receive(&line)),
            Incoming::TooLong(start, bytes) => {
                return Ok(self.session.receive_too_long(&start, bytes));
            }
            Incoming::Message { request, body } => (request, self.session.receive(&body)),
            Incoming::Refused { request, error } if error.code == RpcError::HEADER_MISMATCH => {
                (request, self.refuse_headers(request, error))
            }
            Incoming::Refused { request, error } => {
                (request, self.session.receive_error(request, error))
            }
            Incoming::Unreadable { request, reason } => {
                let event = self.session.reject_answer(request, reason);
                (request, event.into_iter().collect())
            }
            Incoming::Ended {
                request,
                method,
                failure,
            } => {
                if self.session.is_waiting_for(request) {
                    self.end_request(request, &method, failure)?;
                }
                return Ok(Vec::new());
            }
            Incoming::SessionBegan(_) | Incoming::HandshakeEnded => return Ok(Vec::new()),
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
        failure: CallReply,
    ) -> Result<(), String> {
        if method == "server/discover"
            && is_of_older_server(&failure)
            && self.session.give_up_probe()
        {
            return Ok(());
        }
        if method != "tools/call" {
            return Err(match failure {
                CallReply::Failed(error) => {
                    let detail = error.detail.clone();
                    self.failure = Some(error);
                    detail
                }
                CallReply::Status { text, .. } => text,
                _ => "the server doesn't know the session that it began".to_owned(),
            });
        }
        if matches!(failure, CallReply::SessionExpired) {
            self.expire("the server no longer knew the session");
        }
        let call = self.session.abandon_request(request);
        if let Some(pending) = call.and_then(|call| self.running.remove(&call)) {
            let _ = pending.reply.send(failure.masked(&self.mask));
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
}

/// Whether a server that answers `server/discover` like this may be one of the legacy era.
fn is_of_older_server(failure: &CallReply) -> bool {
    match failure {
        CallReply::Status { status, .. } => {
            (400..=599).contains(status) && !matches!(status, 401 | 403 | 407 | 429)
        }
        CallReply::Failed(error) => error.phase == TransportPhase::Body,
        _ => false,
    }
}
