//! A connection to a server: one task that owns the server's transport and the state of the protocol, and gets calls as
//! messages.

mod http_events;

use std::collections::HashMap;
use std::mem;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::value::RawValue;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until};

use crate::command::ChildExit;
use crate::control::RunControl;
use crate::http::SendGuard;
use crate::mcp::announcement::ServerAnnouncement;
use crate::mcp::process::ServerLine;
use crate::mcp::server_life::ServerLife;
use crate::mcp::transport::{Incoming, Transport};
use crate::progress::{Progress, ProgressSender};
use crate::timing::PROBE_TIMEOUT;
use redact::Mask;
use toolq_core::text::format_duration;
use toolq_core::types::{
    CallEnding, ServerConfig, ServerEndCause, ServerProtocol, ToolDrift, ToolLock, TransportError,
};
use toolq_mcp::client::{CallError, CallId, ClientSession, ServerIdentity, SessionEvent, ToolList};
use toolq_mcp::{CallToolResult, Implementation, ProtocolPreference, ProtocolVersion};

/// How many of the last lines of a server's stderr stand in the failure of a call.
const MAX_LAST_LINES: usize = 10;

/// A handle for the task. When all handles are dropped, the task ends the server.
#[derive(Debug, Clone)]
pub(crate) struct ServerConnection {
    requests: mpsc::UnboundedSender<ConnectionRequest>,
    /// Set once the server is ended because nobody called it. Locked while a request is handed over, so that none is lost.
    was_idle: Arc<Mutex<bool>>,
    /// The server no longer takes calls on this connection.
    is_expired: Arc<AtomicBool>,
}

#[derive(Debug)]
enum ConnectionRequest {
    Call(PendingCall),
    Cancel { ticket: u64, reason: String },
    ListTools(oneshot::Sender<ListReply>),
}

/// What a server announces, or why that isn't known.
type ListReply = Result<Arc<ServerAnnouncement>, CallReply>;

/// A call that waits for its answer.
#[derive(Debug)]
pub(crate) struct PendingCall {
    /// Tells the calls of a connection apart.
    pub(crate) ticket: u64,
    /// The tool's name at the server.
    pub(crate) tool: String,
    /// What the tool has to be like. Otherwise, it isn't called.
    pub(crate) lock: Option<Arc<ToolLock>>,
    pub(crate) arguments: Box<RawValue>,
    pub(crate) idempotency_key: String,
    pub(crate) progress: ProgressSender,
    /// Marked before the first byte of the call can reach the server.
    pub(crate) guard: SendGuard,
    pub(crate) reply: oneshot::Sender<CallReply>,
}

/// How a call ended.
#[derive(Debug)]
pub(crate) enum CallReply {
    /// The server answered.
    Answered(Result<CallToolResult, CallError>),
    /// The tool isn't what was locked, so the server didn't get the call.
    Drifted(ToolDrift),
    /// There is no connection: why, with the end of the server's stderr.
    Lost { detail: String, stderr: String },
    /// There is no complete response to the call's request. Other calls may go on.
    Failed(TransportError),
    /// The response to the call's request has a status that is an error.
    Status {
        status: u16,
        retry_after: Option<Duration>,
        text: String,
    },
    /// The server no longer knows the session, and refused the call.
    SessionExpired,
    /// The server's program couldn't be started. Holds the operating system's error number.
    NotStarted(i32),
}

impl CallReply {
    /// The reply of a connection whose task is gone.
    pub(crate) fn lost() -> Self {
        Self::Lost {
            detail: "the connection is gone".to_owned(),
            stderr: String::new(),
        }
    }

    /// Returns how long the server asks to wait before the call is made again.
    pub(crate) fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Status { retry_after, .. } => *retry_after,
            _ => None,
        }
    }

    /// Says in one line why there is no answer.
    pub(crate) fn describe(&self, start_failure: impl FnOnce(i32) -> String) -> String {
        match self {
            Self::NotStarted(errno) => start_failure(*errno),
            Self::Lost { detail, stderr } => describe_loss(detail, stderr),
            Self::Failed(error) => error.detail.clone(),
            Self::Status { text, .. } => text.clone(),
            Self::Answered(_) | Self::Drifted(_) | Self::SessionExpired => String::new(),
        }
    }
}

impl ServerConnection {
    /// Begins to speak to a server. The task ends when the server has.
    pub(crate) fn open(
        server: &ServerConfig,
        transport: Transport,
        control: RunControl,
        mask: Arc<Mask>,
        (life, ended): (ServerLife, std::sync::mpsc::Sender<()>),
    ) -> (Self, JoinHandle<()>) {
        let (requests, receiver) = mpsc::unbounded_channel();
        let was_idle = Arc::default();
        let is_expired = Arc::new(AtomicBool::new(false));
        let task = ConnectionTask {
            session: ClientSession::new(preference(server.protocol), implementation()),
            startup: server.startup,
            idle: server.idle,
            last_use: Instant::now(),
            was_idle: Arc::clone(&was_idle),
            transport,
            failure: None,
            is_expired: Arc::clone(&is_expired),
            is_ready: false,
            is_locked: server.is_locked,
            identity: None,
            announcement: None,
            waiting: Vec::new(),
            listeners: Vec::new(),
            running: HashMap::new(),
            control,
            mask,
            life,
        };
        let task = tokio::spawn(async move {
            Box::pin(task.run(receiver)).await;
            let _ = ended.send(());
        });
        let connection = Self {
            requests,
            was_idle,
            is_expired,
        };
        (connection, task)
    }

    /// Hands over a call. Returns it if the connection has ended.
    pub(crate) fn call(&self, call: PendingCall) -> Result<(), PendingCall> {
        let was_idle = lock(&self.was_idle);
        if *was_idle {
            return Err(call);
        }
        let sent = self.requests.send(ConnectionRequest::Call(call));
        sent.map_err(|error| match error.0 {
            ConnectionRequest::Call(call) => call,
            _ => unreachable!("a call was sent"),
        })
    }

    /// Asks what the server announces.
    ///
    /// # Errors
    /// Why that isn't known.
    pub(crate) async fn list_tools(&self) -> ListReply {
        let (sender, reply) = oneshot::channel();
        // If the connection has ended, nobody replies.
        let _ = self.requests.send(ConnectionRequest::ListTools(sender));
        reply.await.unwrap_or_else(|_| Err(CallReply::lost()))
    }

    /// Tells the server that nobody waits for a call any more.
    pub(crate) fn cancel(&self, ticket: u64, reason: String) {
        // A connection that has ended has no calls.
        let _ = self
            .requests
            .send(ConnectionRequest::Cancel { ticket, reason });
    }

    /// Returns whether the server was ended because nobody called it.
    pub(crate) fn was_idle(&self) -> bool {
        *lock(&self.was_idle)
    }

    /// Returns whether the connection has ended, or takes no more calls.
    pub(crate) fn has_ended(&self) -> bool {
        self.was_idle() || self.requests.is_closed() || self.is_expired.load(Ordering::SeqCst)
    }
}

fn lock(was_idle: &Mutex<bool>) -> MutexGuard<'_, bool> {
    was_idle.lock().unwrap_or_else(PoisonError::into_inner)
}

fn preference(protocol: ServerProtocol) -> ProtocolPreference {
    match protocol {
        ServerProtocol::Auto => ProtocolPreference::Auto,
        ServerProtocol::V2025_11_25 => ProtocolPreference::Only(ProtocolVersion::V2025_11_25),
        ServerProtocol::V2026_07_28 => ProtocolPreference::Only(ProtocolVersion::V2026_07_28),
    }
}

fn implementation() -> Implementation {
    Implementation {
        name: "toolq".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
    }
}

/// Says why a connection is lost, with the last lines of the server's stderr. Runtimes end their reports with lines that say
/// little, so one isn't enough.
pub(crate) fn describe_loss(detail: &str, stderr: &str) -> String {
    let lines = stderr.lines().filter(|line| !line.trim().is_empty());
    let lines: Vec<&str> = lines.collect();
    match lines.as_slice() {
        [] => detail.to_owned(),
        [line] => format!("{detail}: {line}"),
        lines => {
            let first = lines.len().saturating_sub(MAX_LAST_LINES);
            let last_lines = lines[first..].join("\n");
            format!("{detail}. Its stderr ends with:\n{last_lines}")
        }
    }
}

fn reply_to_all(
    calls: Vec<PendingCall>,
    listeners: Vec<oneshot::Sender<ListReply>>,
    reply: impl Fn() -> CallReply,
) {
    for listener in listeners {
        let _ = listener.send(Err(reply()));
    }
    for call in calls {
        // A call that has timed out meanwhile waits for nothing.
        let _ = call.reply.send(reply());
    }
}

/// Says what the server ended with, or `otherwise` if that isn't known.
fn describe_exit(exit: &ChildExit, otherwise: &str) -> String {
    match exit {
        ChildExit::Exited { ending, .. } => describe_ending(*ending),
        ChildExit::NotStarted(_) | ChildExit::Unknown => otherwise.to_owned(),
    }
}

fn describe_ending(ending: CallEnding) -> String {
    match ending {
        CallEnding::ExitCode(code) => format!("the server exited with code {code}"),
        CallEnding::Signal(signal) => format!("the server was killed by signal {signal}"),
        CallEnding::LimitExceeded(limit) => {
            format!("the server exceeded limits.{}", limit.name())
        }
        _ => "the server has ended".to_owned(),
    }
}

/// The state of the task.
struct ConnectionTask {
    transport: Transport,
    /// Why the connection ends, if it is because of a request.
    failure: Option<TransportError>,
    /// The server no longer knows the session.
    is_expired: Arc<AtomicBool>,
    session: ClientSession,
    startup: Duration,
    /// How long it may be without a call.
    idle: Option<Duration>,
    /// When a call last came or ended.
    last_use: Instant,
    was_idle: Arc<Mutex<bool>>,
    is_ready: bool,
    /// Whether calls have to wait for the list of tools, too.
    is_locked: bool,
    identity: Option<ServerIdentity>,
    announcement: Option<Arc<ServerAnnouncement>>,
    /// Who waits for the announcement.
    listeners: Vec<oneshot::Sender<ListReply>>,
    /// Calls that came before the server was ready.
    waiting: Vec<PendingCall>,
    running: HashMap<CallId, PendingCall>,
    control: RunControl,
    mask: Arc<Mask>,
    life: ServerLife,
}

/// Why a connection ends.
#[derive(Debug)]
enum ConnectionEnd {
    /// The server has ended, or closed its stdout.
    ServerEnded,
    /// Nobody calls any more.
    RunEnded,
    /// Nobody has called for a while.
    Idle,
    /// The connection can't go on. Says why.
    Failed(String),
}

impl ConnectionEnd {
    fn describe(&self) -> &str {
        match self {
            Self::ServerEnded => "the server has ended",
            Self::RunEnded => "the run has ended",
            Self::Idle => "the server had no calls",
            Self::Failed(why) => why,
        }
    }
}

impl ConnectionTask {
    /// Serves calls until the server is gone or nobody calls any more.
    async fn run(mut self, mut requests: mpsc::UnboundedReceiver<ConnectionRequest>) {
        let end = self.serve(&mut requests).await;
        requests.close();
        while let Ok(request) = requests.try_recv() {
            match request {
                ConnectionRequest::Call(call) => self.waiting.push(call),
                ConnectionRequest::ListTools(reply) => self.listeners.push(reply),
                ConnectionRequest::Cancel { .. } => {}
            }
        }
        let listeners = mem::take(&mut self.listeners);
        let calls = self.waiting.into_iter().chain(self.running.into_values());
        let calls: Vec<PendingCall> = calls.collect();
        let stderr = self.transport.read_stderr_tail().await;
        let stderr = self.mask.apply(&stderr).into_owned();
        let detail = self.mask.apply(end.describe()).into_owned();
        let lost = |detail: String| CallReply::Lost {
            detail,
            stderr: stderr.clone(),
        };
        let has_exited = self.transport.has_exited().await;
        let (mut calls, mut listeners) = (calls, listeners);
        if !has_exited {
            // Nobody waits until it has.
            let (calls, listeners) = (mem::take(&mut calls), mem::take(&mut listeners));
            reply_to_all(calls, listeners, || match &self.failure {
                Some(error) => CallReply::Failed(TransportError {
                    detail: detail.clone(),
                    ..error.clone()
                }),
                None => lost(detail.clone()),
            });
        }
        let strays = self.session.strays();
        let (exit, saved_stderr) = self.transport.end(&self.control).await;
        let cause = match &end {
            ConnectionEnd::RunEnded => (ServerEndCause::RunEnded, None),
            ConnectionEnd::Idle => (ServerEndCause::Idle, None),
            ConnectionEnd::ServerEnded => {
                (ServerEndCause::Exited, Some(describe_exit(&exit, &detail)))
            }
            ConnectionEnd::Failed(_) => (ServerEndCause::GivenUp, Some(detail.clone())),
        };
        self.life.record_end(cause, &exit, strays, saved_stderr);
        reply_to_all(calls, listeners, || match exit {
            ChildExit::NotStarted(errno) => CallReply::NotStarted(errno),
            _ => lost(describe_exit(&exit, &detail)),
        });
    }

    /// Serves calls, and returns why the connection ends.
    async fn serve(
        &mut self,
        requests: &mut mpsc::UnboundedReceiver<ConnectionRequest>,
    ) -> ConnectionEnd {
        let begin = Instant::now();
        let mut is_probing = true;
        loop {
            self.transport.send(self.session.take_output());
            let idle = self.idle.filter(|_| self.is_unused());
            tokio::select! {
                request = requests.recv() => match request {
                    Some(ConnectionRequest::Call(call)) => self.begin_call(call),
                    Some(ConnectionRequest::Cancel { ticket, reason }) => self.cancel_call(ticket, &reason),
                    Some(ConnectionRequest::ListTools(reply)) => self.begin_listing(reply),
                    None => return ConnectionEnd::RunEnded,
                },
                incoming = self.transport.next() => {
                    let Some(incoming) = incoming else {
                        return ConnectionEnd::ServerEnded;
                    };
                    for item in incoming {
                        if let Err(why) = self.receive(item) {
                            return ConnectionEnd::Failed(why);
                        }
                    }
                }
                () = sleep_until(begin + PROBE_TIMEOUT), if is_probing && self.identity.is_none() => {
                    is_probing = false;
                    self.session.give_up_probe();
                }
                () = sleep_until(begin + self.startup), if !self.is_ready => {
                    let startup = format_duration(self.startup);
                    let why = format!("the server wasn't ready after {startup}");
                    return ConnectionEnd::Failed(why);
                }
                () = sleep_until(self.last_use + idle.unwrap_or_default()), if idle.is_some() => {
                    let mut was_idle = lock(&self.was_idle);
                    if requests.is_empty() {
                        *was_idle = true;
                        return ConnectionEnd::Idle;
                    }
                }
                () = self.control.wait_for_kill() => {
                    return ConnectionEnd::Failed("the run was killed".to_owned());
                }
            }
        }
    }

    /// Returns whether nobody waits for anything.
    fn is_unused(&self) -> bool {
        self.running.is_empty() && self.waiting.is_empty() && self.listeners.is_empty()
    }

    /// # Errors
    /// Why the connection can't go on.
    fn receive(&mut self, incoming: Incoming) -> Result<(), String> {
        let events = match incoming {
            Incoming::Line(ServerLine::Whole(line)) => self.session.receive(&line),
            Incoming::Line(ServerLine::TooLong(start, bytes)) => {
                self.session.receive_too_long(&start, bytes)
            }
            Incoming::Http(event) => self.receive_http(event)?,
        };
        for event in events {
            match event {
                SessionEvent::Ready(identity) => {
                    let needs_tools = self.transport.agree_on(identity.version);
                    self.identity = Some(identity);
                    if needs_tools || self.is_locked || !self.listeners.is_empty() {
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
                        self.last_use = Instant::now();
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
                            fraction: total.map(|total| (progress / total).clamp(0.0, 1.0)),
                            ..Progress::default()
                        });
                    }
                }
            }
        }
        Ok(())
    }

    fn begin_listing(&mut self, reply: oneshot::Sender<ListReply>) {
        if let Some(announcement) = &self.announcement {
            let _ = reply.send(Ok(Arc::clone(announcement)));
            return;
        }
        // A server that is ready and not locked hasn't been asked yet.
        if self.is_ready && self.listeners.is_empty() {
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
        self.is_ready = true;
        self.life.record_ready(self.identity.as_ref(), &self.mask);
        for call in mem::take(&mut self.waiting) {
            self.begin_call(call);
        }
    }

    /// Returns how the tool of a call differs from what was locked.
    fn find_drift(&self, call: &PendingCall) -> Option<ToolDrift> {
        let announcement = self.announcement.as_ref()?;
        call.lock
            .as_ref()?
            .find_drift(announcement.tools.get(&call.tool))
    }

    fn begin_call(&mut self, call: PendingCall) {
        self.last_use = Instant::now();
        if call.reply.is_closed() {
            return;
        }
        if !self.is_ready {
            self.waiting.push(call);
            return;
        }
        if self.is_expired.load(Ordering::SeqCst) {
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
        let key = Some(&*call.idempotency_key);
        let id = self
            .session
            .call_tool(&call.tool, call.arguments.clone(), key);
        self.transport.guard_call(id, &call.guard);
        self.running.insert(id, call);
    }

    fn cancel_call(&mut self, ticket: u64, reason: &str) {
        self.last_use = Instant::now();
        self.waiting.retain(|call| call.ticket != ticket);
        let mut running = self.running.iter();
        let found = running.find_map(|(id, call)| (call.ticket == ticket).then_some(*id));
        if let Some(id) = found {
            self.running.remove(&id);
            self.session.cancel_call(id, reason);
        }
    }
}
