//! A call that its server has, or soon gets.

use tokio::sync::oneshot;

use crate::http::SendGuard;
use crate::mcp::connection::{CallReply, ServerConnection};

/// A call that was handed to its server.
pub(crate) struct SentCall {
    pub(crate) connection: ServerConnection,
    pub(crate) ticket: u64,
    pub(crate) guard: SendGuard,
    pub(crate) reply: oneshot::Receiver<CallReply>,
}

impl SentCall {
    /// Returns whether another server may get the call, because this one has ended and never gets it.
    pub(crate) fn may_be_resent(&self) -> bool {
        self.connection.may_be_replaced() && self.guard.try_cancel()
    }

    /// Tells the server that the result is no longer needed. Returns whether it may have seen the call. If not, it
    /// never will.
    pub(crate) fn give_up(&self, reason: String) -> bool {
        let was_sent = !self.guard.try_cancel();
        self.connection.cancel(self.ticket, reason);
        was_sent
    }
}
