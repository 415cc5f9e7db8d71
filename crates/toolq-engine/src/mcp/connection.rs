//! A connection to a server: one task that owns the server's process and the state of the protocol, and gets calls as
//! messages.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::value::RawValue;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, sleep_until};

use crate::command::ChildExit;
use crate::control::RunControl;
use crate::mcp::announcement::ServerAnnouncement;
use crate::mcp::process::{ServerLine, ServerProcess};
use crate::progress::{Progress, ProgressSender};
use crate::timing::PROBE_TIMEOUT;
use redact::Mask;
use toolq_core::text::format_duration;
use toolq_core::types::{CallEnding, ServerConfig, ServerProtocol, ToolDrift, ToolLock};
use toolq_mcp::client::{CallError, CallId, ClientSession, ServerIdentity, SessionEvent, ToolList};
use toolq_mcp::{CallToolResult, Implementation, ProtocolPreference, ProtocolVersion};

/// A handle for the task. When all handles are dropped, the task ends the server.
#[derive(Debug, Clone)]
pub(crate) struct ServerConnection {
    requests: mpsc::UnboundedSender<ConnectionRequest>,
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
    /// Set before the first byte of the call can reach the server.
    pub(crate) was_sent: Arc<AtomicBool>,
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

    /// Says in one line why there is no answer.
    pub(crate) fn describe(&self, start_failure: impl FnOnce(i32) -> String) -> String {
        match self {
            Self::NotStarted(errno) => start_failure(*errno),
            Self::Lost { detail, stderr } => match stderr.trim_end().lines().next_back() {
                Some(line) => format!("{detail}: {line}"),
                None => detail.clone(),
            },
            Self::Answered(_) | Self::Drifted(_) => String::new(),
        }
    }
}

impl ServerConnection {
    /// Begins to speak to a server that has been started.
    pub(crate) fn open(
        server: &ServerConfig,
        process: ServerProcess,
        control: RunControl,
        mask: Arc<Mask>,
        ended: std::sync::mpsc::Sender<()>,
    ) -> Self {
        let (requests, receiver) = mpsc::unbounded_channel();
        let task = ConnectionTask {
            session: ClientSession::new(preference(server.protocol), implementation()),
            startup: server.startup,
            process,
            is_ready: false,
            is_locked: server.is_locked,
            identity: None,
            announcement: None,
            waiting: Vec::new(),
            listeners: Vec::new(),
            running: HashMap::new(),
            control,
            mask,
        };
        tokio::spawn(async move {
            task.run(receiver).await;
            let _ = ended.send(());
        });
        Self { requests }
    }

    /// Hands over a call. Returns it if the connection has ended.
    pub(crate) fn call(&self, call: PendingCall) -> Result<(), PendingCall> {
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

    /// Returns whether the connection has ended.
    pub(crate) fn has_ended(&self) -> bool {
        self.requests.is_closed()
    }
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
    process: ServerProcess,
    session: ClientSession,
    startup: Duration,
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
}

impl ConnectionTask {
    /// Serves calls until the server is gone or nobody calls any more.
    async fn run(mut self, mut requests: mpsc::UnboundedReceiver<ConnectionRequest>) {
        let why = self.serve(&mut requests).await;
        requests.close();
        while let Ok(request) = requests.try_recv() {
            match request {
                ConnectionRequest::Call(call) => self.waiting.push(call),
                ConnectionRequest::ListTools(reply) => self.listeners.push(reply),
                ConnectionRequest::Cancel { .. } => {}
            }
        }
        let listeners = std::mem::take(&mut self.listeners);
        let calls = self.waiting.into_iter().chain(self.running.into_values());
        let calls: Vec<PendingCall> = calls.collect();
        let stderr = self.process.read_stderr_tail().await;
        let stderr = self.mask.apply(&stderr).into_owned();
        let detail = self.mask.apply(&why).into_owned();
        let lost = |detail: String| CallReply::Lost {
            detail,
            stderr: stderr.clone(),
        };
        if !self.process.has_exited().await {
            // Nobody waits until it has.
            reply_to_all(calls, listeners, || lost(detail.clone()));
            self.process.end(&self.control).await;
            return;
        }
        let exit = self.process.end(&self.control).await;
        reply_to_all(calls, listeners, || match exit {
            ChildExit::NotStarted(errno) => CallReply::NotStarted(errno),
            ChildExit::Exited { ending, .. } => lost(describe_ending(ending)),
            ChildExit::Unknown => lost(detail.clone()),
        });
    }

    /// Serves calls, and returns why the connection ends.
    async fn serve(&mut self, requests: &mut mpsc::UnboundedReceiver<ConnectionRequest>) -> String {
        let begin = Instant::now();
        let mut is_probing = true;
        loop {
            self.process.send(self.session.take_output());
            tokio::select! {
                request = requests.recv() => match request {
                    Some(ConnectionRequest::Call(call)) => self.begin_call(call),
                    Some(ConnectionRequest::Cancel { ticket, reason }) => self.cancel_call(ticket, &reason),
                    Some(ConnectionRequest::ListTools(reply)) => self.begin_listing(reply),
                    None => return "the run has ended".to_owned(),
                },
                lines = self.process.next_lines() => {
                    let Some(lines) = lines else {
                        return "the server has ended".to_owned();
                    };
                    for line in lines {
                        if let Err(why) = self.receive(line) {
                            return why;
                        }
                    }
                }
                () = sleep_until(begin + PROBE_TIMEOUT), if is_probing && self.identity.is_none() => {
                    is_probing = false;
                    self.session.give_up_probe();
                }
                () = sleep_until(begin + self.startup), if !self.is_ready => {
                    let startup = format_duration(self.startup);
                    return format!("the server wasn't ready after {startup}");
                }
                () = self.control.wait_for_kill() => return "the run was killed".to_owned(),
            }
        }
    }

    /// # Errors
    /// Why the connection can't go on.
    fn receive(&mut self, line: ServerLine) -> Result<(), String> {
        let events = match line {
            ServerLine::Whole(line) => self.session.receive(&line),
            ServerLine::TooLong(start, bytes) => self.session.receive_too_long(&start, bytes),
        };
        for event in events {
            match event {
                SessionEvent::Ready(identity) => {
                    self.identity = Some(identity);
                    if self.is_locked || !self.listeners.is_empty() {
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

    fn take_list(&mut self, list: ToolList) {
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
        for call in std::mem::take(&mut self.waiting) {
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
        if call.reply.is_closed() {
            return;
        }
        if !self.is_ready {
            self.waiting.push(call);
            return;
        }
        if let Some(drift) = self.find_drift(&call) {
            let _ = call.reply.send(CallReply::Drifted(drift));
            return;
        }
        call.was_sent.store(true, Ordering::SeqCst);
        let key = Some(&*call.idempotency_key);
        let id = self
            .session
            .call_tool(&call.tool, call.arguments.clone(), key);
        self.running.insert(id, call);
    }

    fn cancel_call(&mut self, ticket: u64, reason: &str) {
        self.waiting.retain(|call| call.ticket != ticket);
        let mut running = self.running.iter();
        let found = running.find_map(|(id, call)| (call.ticket == ticket).then_some(*id));
        if let Some(id) = found {
            self.running.remove(&id);
            self.session.cancel_call(id, reason);
        }
    }
}
