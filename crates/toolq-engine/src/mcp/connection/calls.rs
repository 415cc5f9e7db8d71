//! Hands calls to the server, as far as it may get them, and takes them back.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::{CallReply, ConnectionCall, ConnectionTask, Phase};
use toolq_core::types::ToolDrift;

impl ConnectionTask {
    /// Returns how the tool of a call differs from what was locked.
    fn find_drift(&self, call: &ConnectionCall) -> Option<ToolDrift> {
        let announcement = self.announcement.as_ref()?;
        call.lock
            .as_ref()?
            .find_drift(announcement.tools.get(&*call.tool))
    }

    pub(super) fn begin_call(&mut self, call: ConnectionCall) {
        self.note_use();
        if call.reply.is_closed() {
            return;
        }
        if self.phase < Phase::Ready {
            self.waiting.push(call);
            return;
        }
        if self.state.is_expired.load(Ordering::SeqCst) {
            let _ = call.reply.send(CallReply::SessionExpired);
            return;
        }
        if let Some(drift) = self.find_drift(&call) {
            let _ = call.reply.send(CallReply::Drifted(drift));
            return;
        }
        if !self.transport.admits(&call.guard) {
            return;
        }
        self.life.count_call();
        let (tool, arguments) = (Arc::clone(&call.tool), Arc::clone(&call.arguments));
        let id = self.session.call_tool(tool, arguments, call.meta.clone());
        self.transport.guard_call(id, &call.guard);
        self.running.insert(id, call);
    }

    pub(super) fn cancel_call(&mut self, ticket: u64, reason: &str) {
        self.note_use();
        self.waiting.retain(|call| call.ticket != ticket);
        let mut running = self.running.iter();
        let found = running.find_map(|(id, call)| (call.ticket == ticket).then_some(*id));
        if let Some(id) = found {
            self.running.remove(&id);
            self.session.cancel_call(id, reason);
        }
    }
}
