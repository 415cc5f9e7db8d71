//! What the messages of a server mean to a connection: its announcement, and the answers to its calls.

use std::mem;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use tokio::sync::oneshot;

use super::{CallReply, ConnectionTask, ListReply, Phase};
use crate::attempt::Progress;
use crate::mcp::announcement::ServerAnnouncement;
use crate::mcp::process::StdoutLine;
use crate::mcp::transport::Incoming;
use toolq_mcp::ProtocolEra;
use toolq_mcp::client::{SessionEvent, ToolList};

impl ConnectionTask {
    /// # Errors
    /// Why the connection can't continue.
    pub(super) fn receive(&mut self, incoming: Incoming) -> Result<(), String> {
        self.session.set_answering(!self.transport.is_behind());
        let events = match incoming {
            Incoming::Line(StdoutLine::Whole(line)) => self.session.receive(&line),
            Incoming::Line(StdoutLine::TooLong(start, bytes)) => {
                self.session.receive_too_long(&start, bytes)
            }
            Incoming::Http(event) => self.receive_http(event)?,
        };
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
                SessionEvent::HandshakeFailed(error) => return Err(error.to_string()),
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
