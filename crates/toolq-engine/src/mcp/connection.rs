//! A connection to a server: one task that owns the server's transport and the state of the protocol, and gets calls as
//! messages.

mod events;
mod service;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::value::RawValue;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::attempt::ProgressSender;
use crate::control::RunControl;
use crate::http::SendGuard;
use crate::mcp::announcement::ServerAnnouncement;
use crate::mcp::incoming::CallReply;
use crate::mcp::server_life::ServerLife;
use crate::mcp::transport::Transport;
use redact::Mask;
use toolq_core::types::{ServerConfig, ServerProtocol, ToolDrift, ToolLock, TransportError};
use toolq_mcp::client::{CallId, CallMeta, ClientSession, ServerIdentity};
use toolq_mcp::{Implementation, ProtocolPreference, ProtocolVersion};

/// A handle for the task. When all handles are dropped, the task ends the server.
#[derive(Debug, Clone)]
pub(crate) struct ServerConnection {
    requests: mpsc::UnboundedSender<ConnectionRequest>,
    state: Arc<ConnectionState>,
}

/// What the task shares with its handles.
#[derive(Debug, Default)]
struct ConnectionState {
    /// Set once the server is ended because it had no calls. Locked while a request is handed over, so that none is
    /// lost.
    was_idle: Mutex<bool>,
    /// The server no longer takes calls on this connection.
    is_expired: AtomicBool,
    /// The server speaks the legacy era.
    is_legacy: AtomicBool,
    /// The server was never ready, which may be because it was asked for the modern era.
    has_failed_probe: AtomicBool,
    /// Set before the connection takes no more requests, if another server may get the calls that weren't sent.
    may_be_replaced: AtomicBool,
}

/// The connection has ended, and takes no more requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ConnectionEnded;

#[derive(Debug)]
enum ConnectionRequest {
    Call(ConnectionCall),
    Cancel { ticket: u64, reason: String },
    ListTools(oneshot::Sender<ListReply>),
}

/// What a server announces, or why that isn't known.
type ListReply = Result<Arc<ServerAnnouncement>, CallReply>;

impl ServerConnection {
    /// Begins to speak to a server. The task ends when the server has.
    pub(crate) fn open(
        server: &ServerConfig,
        transport: Transport,
        control: RunControl,
        mask: Arc<Mask>,
        (life, ended): (ServerLife, std::sync::mpsc::Sender<()>),
        is_legacy: bool,
    ) -> (Self, JoinHandle<()>) {
        let (requests, receiver) = mpsc::unbounded_channel();
        let state = Arc::<ConnectionState>::default();
        let task = ConnectionTask {
            session: ClientSession::new(preference(server, is_legacy), implementation()),
            falls_back: server.protocol == ServerProtocol::Auto && !is_legacy,
            startup: server.startup,
            idle: server.idle,
            last_use: Instant::now(),
            state: Arc::clone(&state),
            transport,
            failure: None,
            expiry: "",
            phase: Phase::Starting,
            compares_tools: server.compares_tools,
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
        (Self { requests, state }, task)
    }

    /// Hands over a call.
    ///
    /// # Errors
    /// The connection has ended, so the server won't get the call.
    pub(crate) fn call(&self, call: ConnectionCall) -> Result<(), ConnectionEnded> {
        self.hand_over(ConnectionRequest::Call(call))
    }

    /// Asks what the server announces. Returns that, or why it isn't known.
    ///
    /// # Errors
    /// The connection has ended, so the server won't be asked.
    pub(crate) async fn list_tools(&self) -> Result<ListReply, ConnectionEnded> {
        let (sender, reply) = oneshot::channel();
        self.hand_over(ConnectionRequest::ListTools(sender))?;
        Ok(reply.await.unwrap_or_else(|_| Err(CallReply::lost())))
    }

    fn hand_over(&self, request: ConnectionRequest) -> Result<(), ConnectionEnded> {
        let was_idle = self.state.was_idle.lock();
        if *was_idle {
            return Err(ConnectionEnded);
        }
        self.requests.send(request).map_err(|_| ConnectionEnded)
    }

    /// Tells the server that the result of a call is no longer needed.
    pub(crate) fn cancel(&self, ticket: u64, reason: String) {
        // A connection that has ended has no calls.
        let _ = self
            .requests
            .send(ConnectionRequest::Cancel { ticket, reason });
    }

    /// Returns whether the server was ended because it had no calls.
    pub(crate) fn was_idle(&self) -> bool {
        *self.state.was_idle.lock()
    }

    /// Returns whether the server speaks the legacy era, or may speak it.
    pub(crate) fn is_legacy(&self) -> bool {
        self.state.is_legacy.load(Ordering::SeqCst) || self.has_failed_probe()
    }

    /// Returns whether the server was never ready, which may be because it was asked for the modern era.
    pub(crate) fn has_failed_probe(&self) -> bool {
        self.state.has_failed_probe.load(Ordering::SeqCst)
    }

    /// Returns whether the server has ended by itself after it had answered a call, or because it was asked for the modern era.
    /// One that dies at its start isn't worth another start for the same call.
    pub(crate) fn may_be_replaced(&self) -> bool {
        self.state.may_be_replaced.load(Ordering::SeqCst)
    }

    /// Returns whether the connection has ended, or takes no more calls.
    pub(crate) fn has_ended(&self) -> bool {
        let is_expired = self.state.is_expired.load(Ordering::SeqCst);
        self.was_idle() || self.requests.is_closed() || is_expired
    }
}

fn preference(server: &ServerConfig, is_legacy: bool) -> ProtocolPreference {
    match server.protocol {
        ServerProtocol::Auto if is_legacy => ProtocolPreference::LegacyFirst,
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

/// How far a server has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Phase {
    /// Calls wait.
    Starting,
    /// Calls are sent.
    Ready,
    /// It has answered a call.
    Proven,
}

/// The state of the task.
struct ConnectionTask {
    transport: Transport,
    /// Why the connection ends, if it is because of a request.
    failure: Option<TransportError>,
    state: Arc<ConnectionState>,
    /// Why the server takes no more calls on this connection, once it doesn't.
    expiry: &'static str,
    session: ClientSession,
    /// If it isn't ready, it may be because of the probe for the modern era.
    falls_back: bool,
    startup: Duration,
    /// How long it may be without a call.
    idle: Option<Duration>,
    /// When a call last came or ended.
    last_use: Instant,
    phase: Phase,
    /// Whether calls have to wait for the list of tools, too.
    compares_tools: bool,
    identity: Option<ServerIdentity>,
    announcement: Option<Arc<ServerAnnouncement>>,
    /// Who waits for the announcement.
    listeners: Vec<oneshot::Sender<ListReply>>,
    /// Calls that came before the server was ready.
    waiting: Vec<ConnectionCall>,
    running: HashMap<CallId, ConnectionCall>,
    control: RunControl,
    mask: Arc<Mask>,
    life: ServerLife,
}

// Hands calls to the server, as far as it may get them, and takes them back.

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

    fn cancel_call(&mut self, ticket: u64, reason: &str) {
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

// What a call waits for, and how it ends.

/// A call that waits for its answer.
#[derive(Debug)]
pub(crate) struct ConnectionCall {
    /// Tells the calls of a connection apart.
    pub(crate) ticket: u64,
    /// The tool's name at the server.
    pub(crate) tool: Arc<str>,
    /// What the tool has to be like. Otherwise, it isn't called.
    pub(crate) lock: Option<Arc<ToolLock>>,
    pub(crate) arguments: Arc<RawValue>,
    /// What the server receives about the call.
    pub(crate) meta: CallMeta,
    pub(crate) progress: ProgressSender,
    /// Marked before the first byte of the call can reach the server.
    pub(crate) guard: SendGuard,
    pub(crate) reply: oneshot::Sender<CallReply>,
}

/// The callers that wait for a connection.
#[derive(Debug, Default)]
pub(super) struct Waiters {
    pub(super) calls: Vec<ConnectionCall>,
    pub(super) listeners: Vec<oneshot::Sender<ListReply>>,
}

impl Waiters {
    pub(super) fn is_empty(&self) -> bool {
        self.calls.is_empty() && self.listeners.is_empty()
    }

    pub(super) fn reply_to_all(self, reply: impl Fn() -> CallReply) {
        for listener in self.listeners {
            let _ = listener.send(Err(reply()));
        }
        for call in self.calls {
            // A call that has timed out meanwhile waits for nothing.
            let _ = call.reply.send(reply());
        }
    }
}

// A call that its server has, or soon gets.

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
