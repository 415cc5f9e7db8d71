//! Runs MCP backings: hands a call to its server, and waits for the answer. The call's timeout counts from the start,
//! while the server starts, too.

mod exchange;

use std::cell::{Cell, RefCell};
use std::future::pending;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use tokio::sync::oneshot;

use crate::attempt::{Attempt, AttemptResult};
use crate::command::CommandRunner;
use crate::control::RunControl;
use crate::mcp::announcement::ServerAnnouncement;
use crate::mcp::connection::{CallReply, ConnectionEnded, ServerConnection};
use crate::mcp::outcome::Attachments;
use crate::mcp::outcome::{add_client_content, outcome_of_reply, refuse_output, transport_error};
use crate::mcp::result_parts::StructuredContentReader;
use crate::mcp::result_parts::choose_parts;
use crate::mcp::result_parts::client_blocks;
use crate::mcp::runner::exchange::{CallEnd, CallExchange};
use crate::mcp::server_connections::ServerConnections;
use crate::mcp::server_life::ServerNotice;
use crate::output::OutputCollector;
use crate::reach::Reach;
use crate::settings::EngineSettings;
use redact::Mask;
use toolq_core::answer::failure_cause;
use toolq_core::os::Environment;
use toolq_core::text::format_duration;
use toolq_core::types::{
    Backing, CallOutput, ClientContent, Effect, McpBacking, McpInvocation, Outcome, OutputKind,
    ServerConfig, Tool,
};

/// Calls the tools of the servers of a tools.yaml.
pub(crate) struct McpRunner {
    environment: Arc<Environment>,
    mask: Arc<Mask>,
    outputs: Option<PathBuf>,
    connections: ServerConnections,
    next_ticket: AtomicU64,
    structured_content: StructuredContentReader,
}

impl McpRunner {
    pub(crate) fn new(settings: &EngineSettings) -> Self {
        Self {
            environment: Arc::clone(&settings.environment),
            mask: Arc::clone(&settings.mask),
            outputs: settings.output_dir.clone(),
            connections: ServerConnections::new(settings),
            next_ticket: AtomicU64::new(0),
            structured_content: StructuredContentReader::new(Arc::clone(&settings.mask)),
        }
    }

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
        let output = OutputCollector::for_response(tool, self.outputs.as_ref(), &self.mask, None)
            .with_counter(attempt.output_counter);
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
        let start_failure = |errno| commands.server_start_failure(server, errno);
        let structured = match &reply {
            CallReply::Answered(Ok(result)) if !result.is_error => {
                self.structured_content
                    .read(backing.lock.as_deref(), result, tool.max_output)
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
            dir: self.outputs.clone(),
            max_bytes: tool.max_saved,
            mask: Arc::clone(&self.mask),
            count: Cell::default(),
            kept: RefCell::default(),
        };
        let blocks = match &reply {
            CallReply::Answered(Ok(result)) if !result.is_error && !is_json => {
                client_blocks(result, max_shown, &self.mask, &attachments)
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

    /// As [`ServerConnections::connect`].
    pub(super) async fn connect(
        &self,
        server: &Arc<ServerConfig>,
        control: &RunControl,
        commands: &CommandRunner,
    ) -> Result<ServerConnection, Outcome> {
        self.connections.connect(server, control, commands).await
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

    /// As [`ServerConnections::retain`].
    pub(crate) fn retain_servers(&self, servers: &[Arc<ServerConfig>]) {
        self.connections.retain(servers);
    }

    /// Returns what happened to servers since this was last asked.
    pub(crate) fn take_notices(&self) -> Vec<ServerNotice> {
        self.connections.take_notices()
    }

    /// Ends all servers, and waits until they have ended.
    pub(crate) fn close(&self) {
        self.connections.close();
    }
}

/// Waits until the attempt is canceled. It doesn't watch for a kill: a run is killed only after it was halted, which cancels its
/// attempts.
async fn canceled(cancel: oneshot::Receiver<()>) {
    if cancel.await.is_err() {
        pending::<()>().await;
    }
}
