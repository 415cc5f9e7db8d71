//! Runs MCP backings: starts a server or connects to it at its first call, hands it the call, and waits for the answer
//! within the call's timeout.

use std::collections::HashMap;
use std::mem;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use serde_json::value::RawValue;
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::{Mutex, oneshot};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::attempt::{Attempt, AttemptResult, CancelPoint, cancelled};
use crate::command::CommandRunner;
use crate::control::RunControl;
use crate::http::{HttpClients, SendGuard};
use crate::mcp::attachments::Attachments;
use crate::mcp::connection::{CallReply, PendingCall, ServerConnection};
use crate::mcp::http_endpoint::HttpEndpoint;
use crate::mcp::http_transport::HttpTransport;
use crate::mcp::notices::{ServerNotice, ServerNotices};
use crate::mcp::outcome::{outcome_of_reply, refuse_output, transport_error};
use crate::mcp::output_schemas::OutputSchemas;
use crate::mcp::process::ServerProcess;
use crate::mcp::restart_budget::{RESTART_WINDOW, RestartBudget};
use crate::mcp::server_life::ServerLife;
use crate::mcp::transport::Transport;
use crate::output::OutputCollector;
use crate::partial_values::resolve_json;
use crate::progress::ProgressSender;
use crate::settings::EngineSettings;
use crate::timing::SERVER_GRACE;
use redact::Mask;
use toolq_core::os::Environment;
use toolq_core::text::{format_count, format_duration};
use toolq_core::types::{
    Backing, CallOutput, DoubtCause, Effect, McpBacking, McpInvocation, Outcome, ServerConfig,
    ServerTransport,
};

/// How long all servers together may take to end: each first ends by itself, then after SIGTERM, then by SIGKILL.
const END_TIMEOUT: Duration = SERVER_GRACE.saturating_mul(3);

/// Calls the tools of the servers of a tools.yaml.
pub(crate) struct McpRunner {
    environment: Arc<Environment>,
    mask: Arc<Mask>,
    outputs: Option<PathBuf>,
    clients: HttpClients,
    /// By the server's name. Locked while a server starts, so that it starts once.
    connections: Mutex<HashMap<String, OpenConnection>>,
    next_ticket: AtomicU64,
    output_schemas: OutputSchemas,
    notices: ServerNotices,
}

/// A connection, and how to learn that its server has ended.
struct OpenConnection {
    connection: ServerConnection,
    ended: mpsc::Receiver<()>,
    task: JoinHandle<()>,
    /// How often the server was started before.
    earlier_starts: u32,
    restart_budget: RestartBudget,
}

/// A call that was handed to its server.
struct SentCall {
    connection: ServerConnection,
    ticket: u64,
    guard: SendGuard,
    reply: oneshot::Receiver<CallReply>,
}

/// How a call ended.
enum CallEnd {
    Replied(CallReply),
    TimedOut,
    Cancelled,
}

impl SentCall {
    /// Tells the server that nobody waits any more. Returns whether it may have seen the call. If not, it never will.
    fn give_up(&self, reason: String) -> bool {
        let was_sent = !self.guard.try_cancel();
        self.connection.cancel(self.ticket, reason);
        was_sent
    }
}

impl McpRunner {
    pub(crate) fn new(settings: &EngineSettings) -> Self {
        Self {
            environment: Arc::clone(&settings.environment),
            mask: Arc::clone(&settings.mask),
            outputs: settings.output_dir.clone(),
            clients: HttpClients::new(settings.jobs, settings.resolver.clone()),
            connections: Mutex::default(),
            next_ticket: AtomicU64::new(0),
            output_schemas: OutputSchemas::default(),
            notices: ServerNotices::default(),
        }
    }

    /// Runs one attempt. `commands` starts the server if it isn't running.
    pub(crate) async fn run(
        &self,
        invocation: &McpInvocation,
        attempt: Attempt,
        commands: &CommandRunner,
    ) -> AttemptResult {
        let Attempt {
            job,
            idempotency_key,
            timeout: limit,
            cancel,
            progress,
            output_counter,
            control,
            ..
        } = attempt;
        let tool = &job.accepted.tool;
        let Some(Backing::Mcp(backing)) = &tool.backing else {
            return Outcome::NoBacking.into();
        };
        let output = OutputCollector::for_response(tool, self.outputs.as_ref(), &self.mask, None)
            .with_counter(output_counter);
        let mut timed_out = pin!(control.sleep(limit.duration));
        let mut cancelled = pin!(cancelled(cancel, &control));
        let mut is_repeated = false;
        let (sent, end) = loop {
            let sent = self.send(
                invocation,
                backing,
                (&idempotency_key, &progress),
                (&control, commands),
            );
            let mut sent = match sent.await {
                Ok(sent) => sent,
                Err(outcome) => return outcome.into(),
            };
            let end = tokio::select! {
                // An answer that has come counts.
                biased;
                reply = &mut sent.reply => CallEnd::Replied(reply.unwrap_or_else(|_| CallReply::lost())),
                () = &mut timed_out => CallEnd::TimedOut,
                () = &mut cancelled => CallEnd::Cancelled,
            };
            // The server says that it has refused the call, but a `write` isn't sent twice on anybody's word.
            let may_repeat = !is_repeated && tool.effect != Effect::Write;
            match end {
                CallEnd::Replied(CallReply::SessionExpired) if may_repeat => is_repeated = true,
                end => break (sent, end),
            }
        };
        let server = &backing.server;
        match end {
            CallEnd::Replied(reply) => {
                let was_sent = sent.guard.is_sent();
                let start_failure = |errno| commands.server_start_failure(server, errno);
                let violation = match &reply {
                    CallReply::Answered(Ok(result)) if !result.is_error => self
                        .output_schemas
                        .find_violation(backing.lock.as_deref(), result),
                    _ => None,
                };
                let retry_after = reply.retry_after();
                let effect = (tool.effect, was_sent);
                let attachments = Attachments {
                    dir: self.outputs.clone(),
                    max_bytes: tool.max_saved,
                    mask: Arc::clone(&self.mask),
                };
                let name = &server.name;
                let outcome =
                    outcome_of_reply(reply, name, effect, output, &attachments, start_failure);
                let outcome = match violation {
                    Some(problem) => refuse_output(outcome, self.mask.apply(&problem).into_owned()),
                    None => outcome,
                };
                AttemptResult::Finished {
                    outcome,
                    retry_after,
                }
            }
            CallEnd::TimedOut => {
                let limit = limit.configured;
                let was_sent = sent.give_up(format!("timed out after {}", format_duration(limit)));
                timeout_outcome((&server.name, limit), (tool.effect, was_sent), output).into()
            }
            CallEnd::Cancelled => {
                let was_sent = sent.give_up("cancelled".to_owned());
                let cancel_point = match (was_sent, tool.effect) {
                    (false, _) => CancelPoint::BeforeStart,
                    (true, Effect::Write) => CancelPoint::Unknown,
                    (true, Effect::Read | Effect::Idempotent) => CancelPoint::WhileRunning,
                };
                AttemptResult::Cancelled {
                    partial_output: CallOutput::default(),
                    cancel_point,
                }
            }
        }
    }

    /// Hands the call to its server.
    ///
    /// # Errors
    /// The outcome of the call, because the server can't be started or a variable isn't set.
    async fn send(
        &self,
        invocation: &McpInvocation,
        backing: &McpBacking,
        (idempotency_key, progress): (&str, &ProgressSender),
        (control, commands): (&RunControl, &CommandRunner),
    ) -> Result<SentCall, Outcome> {
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
            idempotency_key: idempotency_key.to_owned(),
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

    /// Returns the connection to a server. Its program is started if it isn't running.
    pub(crate) async fn connect(
        &self,
        server: &ServerConfig,
        control: &RunControl,
        commands: &CommandRunner,
    ) -> Result<ServerConnection, Outcome> {
        let mut connections = self.connections.lock().await;
        let (mut earlier_starts, mut restart_budget) = (0, RestartBudget::default());
        match connections.get_mut(&server.name) {
            Some(open) if !open.connection.has_ended() => return Ok(open.connection.clone()),
            Some(open) => {
                if open.connection.was_idle() {
                    // There are never two.
                    let _ = timeout(END_TIMEOUT, &mut open.task).await;
                } else if server.program().is_some() {
                    let restart = open
                        .restart_budget
                        .count_restart(server.restarts, Instant::now());
                    restart.map_err(|restarts| refuse_restart(server, restarts))?;
                }
                earlier_starts = open.earlier_starts + 1;
                restart_budget = mem::take(&mut open.restart_budget);
            }
            None => {}
        }
        let transport = match &server.transport {
            ServerTransport::Program(program) => {
                let (child, pipes) = commands.start_server(program).await?;
                let (outputs, mask) = (self.outputs.clone(), Arc::clone(&self.mask));
                let process = ServerProcess::new(child, pipes, outputs, mask);
                Transport::Program(Box::new(process))
            }
            ServerTransport::Endpoint(endpoint) => {
                let endpoint =
                    HttpEndpoint::resolve(server, endpoint, &self.clients, &self.environment)?;
                Transport::Endpoint(Box::new(HttpTransport::new(endpoint)))
            }
        };
        let life = ServerLife::begin(server, earlier_starts, self.notices.clone());
        let (sender, ended) = mpsc::channel();
        let (connection, task) = ServerConnection::open(
            server,
            transport,
            control.clone(),
            Arc::clone(&self.mask),
            (life, sender),
        );
        let open = OpenConnection {
            connection: connection.clone(),
            ended,
            task,
            earlier_starts,
            restart_budget,
        };
        connections.insert(server.name.clone(), open);
        Ok(connection)
    }

    /// Returns what happened to servers since this was last asked.
    pub(crate) fn take_notices(&self) -> Vec<ServerNotice> {
        self.notices.take()
    }

    /// Ends all servers, and waits until they have ended.
    pub(crate) fn close(&self) {
        let Ok(mut connections) = self.connections.try_lock() else {
            return;
        };
        let (senders, ended): (Vec<_>, Vec<_>) = connections
            .drain()
            .map(|(_, open)| (open.connection, open.ended))
            .unzip();
        drop(senders);
        // On a runtime of one thread, the servers can't end while this thread waits. The supervisor kills them then.
        let can_wait = Handle::try_current().map_or(true, |runtime| {
            runtime.runtime_flavor() == RuntimeFlavor::MultiThread
        });
        if can_wait {
            wait_for_ends(&ended);
        }
    }
}

/// Returns the outcome of a call of a server that has ended too often.
fn refuse_restart(server: &ServerConfig, restarts: u32) -> Outcome {
    let detail = format!(
        "it has ended {} within {}, and isn't started again for now",
        format_count(restarts + 1, "time"),
        format_duration(RESTART_WINDOW)
    );
    Outcome::TransportFailed(transport_error(&server.name, false, detail))
}

/// Waits until all servers have ended, or for as long as they may take.
fn wait_for_ends(ended: &[mpsc::Receiver<()>]) {
    let deadline = Instant::now() + END_TIMEOUT;
    for end in ended {
        // A task that is gone has ended its server, too.
        let _ = end.recv_timeout(deadline.saturating_duration_since(Instant::now()));
    }
}

/// Returns the outcome of a call without an answer in time. A `write` call that the server may have seen is in doubt.
fn timeout_outcome(
    (server, limit): (&str, Duration),
    (effect, was_sent): (Effect, bool),
    output: OutputCollector,
) -> Outcome {
    if !was_sent {
        let detail = format!("not ready within {}", format_duration(limit));
        return Outcome::TransportFailed(transport_error(server, false, detail));
    }
    let output = output.into_output(String::new());
    if effect == Effect::Write {
        return Outcome::InDoubt {
            cause: DoubtCause::TimedOut(limit),
            output,
        };
    }
    Outcome::TimedOut {
        no_calls_started: false,
        limit,
        output,
    }
}
