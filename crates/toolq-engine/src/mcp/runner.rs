//! Runs MCP backings: starts a server at its first call, hands it the call, and waits for the answer within the call's
//! timeout.

use std::collections::HashMap;
use std::mem;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
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
use crate::mcp::connection::{CallReply, PendingCall, ServerConnection};
use crate::mcp::notices::{ServerNotice, ServerNotices};
use crate::mcp::outcome::{outcome_of_reply, refuse_output, transport_error};
use crate::mcp::output_schemas::OutputSchemas;
use crate::mcp::process::ServerProcess;
use crate::mcp::restart_budget::{RESTART_WINDOW, RestartBudget};
use crate::mcp::server_life::ServerLife;
use crate::output::OutputCollector;
use crate::partial_values::resolve_json;
use crate::settings::EngineSettings;
use crate::timing::SERVER_GRACE;
use redact::Mask;
use toolq_core::os::Environment;
use toolq_core::text::{format_count, format_duration};
use toolq_core::types::{
    Backing, CallOutput, DoubtCause, Effect, McpBacking, McpInvocation, Outcome, ServerConfig,
};

/// How long all servers together may take to end: each first ends by itself, then after SIGTERM, then by SIGKILL.
const END_TIMEOUT: Duration = SERVER_GRACE.saturating_mul(3);

/// Calls the tools of the servers of a tools.yaml.
pub(crate) struct McpRunner {
    environment: Arc<Environment>,
    mask: Arc<Mask>,
    outputs: Option<PathBuf>,
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
    was_sent: Arc<AtomicBool>,
    reply: oneshot::Receiver<CallReply>,
}

impl McpRunner {
    pub(crate) fn new(settings: &EngineSettings) -> Self {
        Self {
            environment: Arc::clone(&settings.environment),
            mask: Arc::clone(&settings.mask),
            outputs: settings.output_dir.clone(),
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
        let job = Arc::clone(&attempt.job);
        let tool = &job.accepted.tool;
        let Some(Backing::Mcp(backing)) = &tool.backing else {
            return Outcome::NoBacking.into();
        };
        let server = &backing.server;
        let output = OutputCollector::for_response(tool, self.outputs.as_ref(), &self.mask, None)
            .with_counter(attempt.output_counter.clone());
        let sent = match self.send(invocation, backing, &attempt, commands).await {
            Ok(sent) => sent,
            Err(outcome) => return outcome.into(),
        };
        let limit = attempt.timeout;
        let SentCall {
            connection,
            ticket,
            was_sent,
            reply,
        } = sent;
        tokio::select! {
            // An answer that has come counts.
            biased;
            reply = reply => {
                let reply = reply.unwrap_or_else(|_| CallReply::lost());
                let sent = was_sent.load(Ordering::SeqCst);
                let start_failure = |errno| commands.server_start_failure(server, errno);
                let violation = match &reply {
                    CallReply::Answered(Ok(result)) if !result.is_error => {
                        self.output_schemas.find_violation(backing.lock.as_deref(), result)
                    }
                    _ => None,
                };
                let outcome = outcome_of_reply(reply, &server.name, (tool.effect, sent), output, start_failure);
                match violation {
                    Some(problem) => refuse_output(outcome, self.mask.apply(&problem).into_owned()).into(),
                    None => outcome.into(),
                }
            }
            () = attempt.control.sleep(limit.duration) => {
                connection.cancel(ticket, format!("timed out after {}", format_duration(limit.configured)));
                let sent = was_sent.load(Ordering::SeqCst);
                timeout_outcome((&server.name, limit.configured), (tool.effect, sent), output).into()
            }
            () = cancelled(attempt.cancel, &attempt.control) => {
                connection.cancel(ticket, "cancelled".to_owned());
                let cancel_point = match (was_sent.load(Ordering::SeqCst), tool.effect) {
                    (false, _) => CancelPoint::BeforeStart,
                    (true, Effect::Write) => CancelPoint::Unknown,
                    (true, Effect::Read | Effect::Idempotent) => CancelPoint::WhileRunning,
                };
                AttemptResult::Cancelled { partial_output: CallOutput::default(), cancel_point }
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
        attempt: &Attempt,
        commands: &CommandRunner,
    ) -> Result<SentCall, Outcome> {
        let server = &backing.server;
        let arguments = resolve_json(&invocation.arguments, &self.environment)?;
        let arguments = RawValue::from_string(arguments)
            .map_err(|error| Outcome::InternalError(error.to_string()))?;
        let ticket = self.next_ticket.fetch_add(1, Ordering::Relaxed);
        let was_sent = Arc::new(AtomicBool::new(false));
        let (sender, reply) = oneshot::channel();
        let mut call = PendingCall {
            ticket,
            tool: invocation.tool.clone(),
            lock: backing.lock.clone(),
            arguments,
            idempotency_key: attempt.idempotency_key.to_string(),
            progress: attempt.progress.clone(),
            was_sent: Arc::clone(&was_sent),
            reply: sender,
        };
        let connection = loop {
            let connection = self.connect(server, &attempt.control, commands).await?;
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
            was_sent,
            reply,
        })
    }

    /// Returns the connection to a server, which is started if it isn't running.
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
                } else {
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
        let (child, pipes) = commands.start_server(server).await?;
        let process =
            ServerProcess::new(child, pipes, self.outputs.clone(), Arc::clone(&self.mask));
        let life = ServerLife::begin(server, earlier_starts, self.notices.clone());
        let (sender, ended) = mpsc::channel();
        let (connection, task) = ServerConnection::open(
            server,
            process,
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
