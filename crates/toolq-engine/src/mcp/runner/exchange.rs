//! One call and its reply: hands the call to its server, again where it may be, and waits.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use serde_json::value::RawValue;
use tokio::sync::oneshot;
use toolq_mcp::client::CallMeta;

use crate::attempt::ProgressSender;
use crate::command::CommandRunner;
use crate::control::RunControl;
use crate::http::SendGuard;
use crate::mcp::connection::{
    CallReply, ConnectionCall, ConnectionEnded, SentCall, ServerConnection,
};
use crate::mcp::outcome::transport_error;
use crate::mcp::runner::McpRunner;
use crate::partial_values::resolve_raw;
use toolq_core::types::{CallTrace, McpBacking, McpInvocation, Outcome};

/// A call, and what is needed to send it.
pub(super) struct CallExchange<'a> {
    pub(super) invocation: &'a McpInvocation,
    pub(super) backing: &'a McpBacking,
    /// By which the server can tell a repeated call.
    pub(super) idempotency_key: Option<&'a str>,
    pub(super) trace: Option<&'a CallTrace>,
    pub(super) progress: &'a ProgressSender,
    pub(super) control: &'a RunControl,
    pub(super) commands: &'a CommandRunner,
    /// Whether the call may be sent again.
    pub(super) may_repeat: bool,
}

/// How a call ended.
pub(super) enum CallEnd {
    /// It can't be handed to its server.
    NotSent(Outcome),
    Replied(CallReply),
    TimedOut,
    Canceled,
}

impl McpRunner {
    /// Sends the call and waits for its reply, until it times out or is canceled. If the server has forgotten the session,
    /// or wants other headers, the call is sent once more where it may be. If the server has ended before it got the call,
    /// the call is sent to the next one. Both happen at most once. Returns how the call ended, and what was handed to the
    /// server.
    pub(super) async fn exchange(
        &self,
        exchange: &CallExchange<'_>,
        mut timed_out: Pin<&mut impl Future<Output = ()>>,
        mut canceled: Pin<&mut impl Future<Output = ()>>,
    ) -> (CallEnd, Option<SentCall>) {
        let (mut sent, mut is_repeated) = (None, false);
        loop {
            let reply = async {
                let sent: &mut SentCall = sent.insert(self.send(exchange, &mut is_repeated).await?);
                Ok((&mut sent.reply)
                    .await
                    .unwrap_or_else(|_| CallReply::lost()))
            };
            let end = tokio::select! {
                // An answer that has come counts.
                biased;
                reply = reply => reply.map_or_else(CallEnd::NotSent, CallEnd::Replied),
                () = &mut timed_out => CallEnd::TimedOut,
                () = &mut canceled => CallEnd::Canceled,
            };
            match end {
                CallEnd::Replied(CallReply::SessionExpired | CallReply::HeadersRefused(_))
                    if exchange.may_repeat && !is_repeated =>
                {
                    (sent, is_repeated) = (None, true);
                }
                CallEnd::Replied(CallReply::Lost { .. })
                    if !is_repeated && sent.as_ref().is_some_and(SentCall::may_be_resent) =>
                {
                    (sent, is_repeated) = (None, true);
                }
                end => return (end, sent),
            }
        }
    }

    /// Hands the call to its server. If that has just ended, the next one gets the call, unless `is_repeated`.
    ///
    /// # Errors
    /// The outcome of the call, because the server can't be started or a variable isn't set.
    async fn send(
        &self,
        exchange: &CallExchange<'_>,
        is_repeated: &mut bool,
    ) -> Result<SentCall, Outcome> {
        let server = &exchange.backing.server;
        let arguments = resolve_raw(&exchange.invocation.arguments, &self.environment)?;
        loop {
            let connection = match self.connections.find(server) {
                Some(connection) => connection,
                // Most calls find a connection, and shouldn't need memory for what opens one.
                None => Box::pin(self.connect(server, exchange.control, exchange.commands)).await?,
            };
            let (call, sent) = self.pending_call(exchange, Arc::clone(&arguments), connection);
            match sent.connection.call(call) {
                Ok(()) => return Ok(sent),
                Err(ConnectionEnded) if sent.connection.was_idle() => {}
                Err(ConnectionEnded) if sent.connection.may_be_replaced() && !*is_repeated => {
                    *is_repeated = true;
                }
                Err(ConnectionEnded) => {
                    let detail = "the server ended before it got the call".to_owned();
                    let error = transport_error(&server.name, false, detail);
                    return Err(Outcome::TransportFailed(error));
                }
            }
        }
    }

    /// Returns a call for `connection`, and what is kept of it while it waits for its answer.
    fn pending_call(
        &self,
        exchange: &CallExchange<'_>,
        arguments: Arc<RawValue>,
        connection: ServerConnection,
    ) -> (ConnectionCall, SentCall) {
        let CallExchange {
            invocation,
            backing,
            idempotency_key,
            trace,
            progress,
            ..
        } = exchange;
        let (sender, reply) = oneshot::channel();
        let sent = SentCall {
            connection,
            ticket: self.next_ticket.fetch_add(1, Ordering::Relaxed),
            guard: SendGuard::default(),
            reply,
        };
        let call = ConnectionCall {
            ticket: sent.ticket,
            tool: Arc::clone(&invocation.tool),
            lock: backing.lock.clone(),
            arguments,
            meta: CallMeta {
                wants_progress: progress.is_shown,
                idempotency_key: idempotency_key.map(str::to_owned),
                traceparent: trace.map(|trace| trace.traceparent.clone()),
                tracestate: trace.and_then(|trace| trace.tracestate.clone()),
            },
            progress: ProgressSender::clone(progress),
            guard: sent.guard.clone(),
            reply: sender,
        };
        (call, sent)
    }
}
