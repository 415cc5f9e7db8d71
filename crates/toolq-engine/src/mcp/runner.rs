//! Runs MCP backings: hands a call to its server, and waits for the answer. The call's timeout counts from the start,
//! while the server starts, too.

use std::cell::{Cell, RefCell};
use std::future::pending;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use serde_json::value::RawValue;
use tokio::sync::oneshot;

use crate::attempt::{Attempt, AttemptResult, ProgressSender};
use crate::command::CommandRunner;
use crate::control::RunControl;
use crate::environment::resolve_raw;
use crate::http::SendGuard;
use crate::mcp::announcement::ServerAnnouncement;
use crate::mcp::connection::{ConnectionCall, ConnectionEnded, SentCall, ServerConnection};
use crate::mcp::incoming::CallReply;
use crate::mcp::outcome::{
    Attachments, add_client_content, choose_parts, client_blocks, outcome_of_reply, refuse_output,
    transport_error,
};
use crate::mcp::server_connections::McpRunner;
use crate::output::OutputCollector;
use crate::reach::Reach;
use toolq_core::answer::failure_cause;
use toolq_core::text::format_duration;
use toolq_core::types::{
    Backing, CallOutput, CallTrace, ClientContent, Effect, McpBacking, McpInvocation, Outcome,
    OutputKind, ServerConfig, Tool,
};
use toolq_mcp::client::CallMeta;

impl McpRunner {
    /// Runs one attempt. `commands` starts the server if it isn't running.
    pub(crate) async fn run(
        &self,
        invocation: &McpInvocation,
        attempt: Box<Attempt>,
        commands: &CommandRunner,
    ) -> AttemptResult {
        // It stays in its box, so that what waits for an answer needs little memory.
        let tool = &attempt.job.accepted.tool;
        let Some(Backing::Mcp(backing)) = &tool.backing else {
            return Outcome::NoBacking.into();
        };
        let exchange = CallExchange {
            invocation,
            backing,
            // A call that only reads may be repeated at will.
            idempotency_key: (tool.effect != Effect::Read).then_some(&*attempt.idempotency_key),
            trace: attempt.trace.as_ref(),
            progress: &attempt.progress,
            control: &attempt.control,
            commands,
            // The server says that it has refused the call, but that isn't enough to send a `write` twice.
            may_repeat: tool.effect != Effect::Write,
        };
        let timed_out = pin!(attempt.control.sleep(attempt.timeout.duration));
        let canceled = pin!(canceled(attempt.cancel));
        let (end, sent) = self.exchange(&exchange, timed_out, canceled).await;
        let counter = attempt.output_counter;
        let output = OutputCollector::for_response(tool, None, &self.settings, counter);
        match end {
            CallEnd::NotSent(outcome) => outcome.into(),
            CallEnd::Replied(reply) => {
                let was_sent = sent.is_some_and(|sent| sent.guard.is_sent());
                self.finish_reply(reply, (tool, backing), was_sent, output, commands)
            }
            CallEnd::TimedOut => {
                let limit = attempt.timeout.configured;
                let reason = format!("timed out after {}", format_duration(limit));
                if sent.is_some_and(|sent| sent.give_up(reason)) {
                    let output = output.into_output(String::new());
                    return Reach::outcome_of_timeout(tool.effect, limit, output).into();
                }
                let detail = format!("not ready within {}", format_duration(limit));
                let error = transport_error(&backing.server.name, false, detail);
                Outcome::TransportFailed(error).into()
            }
            CallEnd::Canceled => {
                let was_sent = sent.is_some_and(|sent| sent.give_up("canceled".to_owned()));
                AttemptResult::Canceled {
                    partial_output: CallOutput::default(),
                    reach: Reach::of_request(tool.effect, was_sent),
                }
            }
        }
    }

    /// Makes the outcome of a call out of the server's reply.
    fn finish_reply(
        &self,
        reply: CallReply,
        (tool, backing): (&Tool, &McpBacking),
        was_sent: bool,
        output: OutputCollector,
        commands: &CommandRunner,
    ) -> AttemptResult {
        let server = &backing.server;
        let mask = &self.settings.mask;
        let start_failure = |errno| commands.server_start_failure(server, errno);
        let structured = match &reply {
            CallReply::Answered(Ok(result)) if !result.is_error => {
                let lock = backing.lock.as_deref();
                (self.structured_content).read(lock, result, tool.max_output, mask)
            }
            _ => Ok(None),
        };
        let reply = match reply {
            CallReply::Answered(Ok(result)) if !result.is_error => {
                CallReply::Answered(Ok(choose_parts(result, backing.result)))
            }
            reply => reply,
        };
        let retry_after = reply.retry_after();
        let max_shown = output.max_shown();
        let is_json = output.kind() == OutputKind::Json;
        let effect = (tool.effect, was_sent);
        let attachments = Attachments {
            dir: self.settings.output_dir.clone(),
            max_bytes: tool.max_saved,
            mask: Arc::clone(mask),
            count: Cell::default(),
            kept: RefCell::default(),
        };
        let blocks = match &reply {
            CallReply::Answered(Ok(result)) if !result.is_error && !is_json => {
                client_blocks(result, max_shown, mask, &attachments)
            }
            _ => None,
        };
        let name = &server.name;
        let outcome = outcome_of_reply(reply, name, effect, output, &attachments, start_failure);
        let outcome = match structured {
            Ok(structured) => add_client_content(outcome, ClientContent { structured, blocks }),
            Err(problem) => refuse_output(outcome, problem),
        };
        AttemptResult::Finished {
            outcome,
            retry_after,
        }
    }

    /// Asks a server for its tools. `commands` starts it if it isn't running.
    ///
    /// # Errors
    /// Why there is no list, without secrets.
    pub(crate) async fn list_tools(
        &self,
        server: &Arc<ServerConfig>,
        control: &RunControl,
        commands: &CommandRunner,
    ) -> Result<Arc<ServerAnnouncement>, String> {
        let cause = |outcome| {
            let why = failure_cause(&outcome);
            why.unwrap_or_else(|| "it can't be started".to_owned())
        };
        let reply = loop {
            let connection = self.connect(server, control, commands).await;
            let connection = connection.map_err(cause)?;
            match connection.list_tools().await {
                Ok(Err(_)) if connection.has_failed_probe() && connection.may_be_replaced() => {}
                Ok(reply) => break reply,
                // It was ended in between because it had no calls, and is started again.
                Err(ConnectionEnded) if connection.was_idle() => {}
                Err(ConnectionEnded) => break Err(CallReply::lost()),
            }
        };
        reply.map_err(|reply| {
            reply.describe(|errno| cause(commands.server_start_failure(server, errno)))
        })
    }
}

/// Waits until the attempt is canceled. It doesn't watch for a kill: a run is killed only after it was halted, which cancels its
/// attempts.
async fn canceled(cancel: oneshot::Receiver<()>) {
    if cancel.await.is_err() {
        pending::<()>().await;
    }
}

// One call and its reply: hands the call to its server, again where it may be, and waits.

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
        let arguments = resolve_raw(&exchange.invocation.arguments, &self.settings.environment)?;
        loop {
            let connection = match self.find(server) {
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
