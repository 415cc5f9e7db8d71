//! One call and its reply: hands the call to its server, again where it may be, and waits.

use std::pin::pin;
use std::sync::atomic::Ordering;

use serde_json::value::RawValue;
use tokio::sync::oneshot;
use toolq_mcp::client::CallMeta;

use crate::command::CommandRunner;
use crate::control::RunControl;
use crate::http::SendGuard;
use crate::mcp::connection::{CallReply, PendingCall};
use crate::mcp::outcome::transport_error;
use crate::mcp::runner::McpRunner;
use crate::mcp::sent_call::SentCall;
use crate::partial_values::resolve_json;
use crate::progress::ProgressSender;
use toolq_core::types::{McpBacking, McpInvocation, Outcome};

/// A call, and what is needed to send it.
pub(super) struct Exchange<'a> {
    pub(super) invocation: &'a McpInvocation,
    pub(super) backing: &'a McpBacking,
    /// What the server learns about the call, and where its progress goes.
    pub(super) context: (&'a CallMeta, &'a ProgressSender),
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
    Cancelled,
}

impl McpRunner {
    /// Sends the call and waits for its reply, until it times out or is canceled. If the server has forgotten the session,
    /// or wants other headers, the call is sent once more where it may be. Returns how the call ended, and what was handed to the server.
    pub(super) async fn exchange(
        &self,
        exchange: &Exchange<'_>,
        timed_out: impl Future<Output = ()>,
        cancelled: impl Future<Output = ()>,
    ) -> (CallEnd, Option<SentCall>) {
        let (mut timed_out, mut cancelled) = (pin!(timed_out), pin!(cancelled));
        let (mut sent, mut is_repeated) = (None, false);
        loop {
            let reply = async {
                let sent: &mut SentCall = sent.insert(self.send(exchange).await?);
                Ok((&mut sent.reply)
                    .await
                    .unwrap_or_else(|_| CallReply::lost()))
            };
            let end = tokio::select! {
                // An answer that has come counts.
                biased;
                reply = reply => reply.map_or_else(CallEnd::NotSent, CallEnd::Replied),
                () = &mut timed_out => CallEnd::TimedOut,
                () = &mut cancelled => CallEnd::Cancelled,
            };
            match end {
                CallEnd::Replied(CallReply::SessionExpired | CallReply::HeadersRefused(_))
                    if exchange.may_repeat && !is_repeated =>
                {
                    (sent, is_repeated) = (None, true);
                }
                end => return (end, sent),
            }
        }
    }

    /// Hands the call to its server.
    ///
    /// # Errors
    /// The outcome of the call, because the server can't be started or a variable isn't set.
    async fn send(&self, exchange: &Exchange<'_>) -> Result<SentCall, Outcome> {
        let Exchange {
            invocation,
            backing,
            context: (meta, progress),
            control,
            commands,
            ..
        } = *exchange;
        let server = &backing.server;
        let arguments = resolve_json(&invocation.arguments, &self.environment)?;
        let arguments = RawValue::from_string(arguments)
            .map_err(|error| Outcome::InternalError(error.to_string()))?;
        let ticket = self.next_ticket.fetch_add(1, Ordering::Relaxed);
        let guard = SendGuard::default();
        let (sender, reply) = oneshot::channel();
        let mut call = PendingCall {
            ticket,
            tool: invocation.tool.clone(),
            lock: backing.lock.clone(),
            arguments,
            meta: meta.clone(),
            progress: progress.clone(),
            guard: guard.clone(),
            reply: sender,
        };
        let connection = loop {
            let connection = self.connect(server, control, commands).await?;
            match connection.call(call) {
                Ok(()) => break connection,
                Err(refused) if connection.was_idle() => call = refused,
                Err(_) => {
                    let detail = "the server ended before it got the call".to_owned();
                    let error = transport_error(&server.name, false, detail);
                    return Err(Outcome::TransportFailed(error));
                }
            }
        };
        Ok(SentCall {
            connection,
            ticket,
            guard,
            reply,
        })
    }
}
