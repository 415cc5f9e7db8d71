//! What runs MCP backings, and its connections to the servers of a run. Each server has a slot of its own, so that only its own
//! calls wait while it starts or ends.

use std::collections::HashMap;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};
use std::{mem, thread};

use parking_lot::Mutex;
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::command::CommandRunner;
use crate::control::RunControl;
use crate::http::HttpClients;
use crate::mcp::connection::ServerConnection;
use crate::mcp::http_transport::{HttpEndpoint, HttpTransport};
use crate::mcp::outcome::{StructuredContentReader, transport_error};
use crate::mcp::process::ServerProcess;
use crate::mcp::server_life::{ServerLife, ServerNotice, ServerNotices};
use crate::mcp::transport::Transport;
use crate::settings::EngineSettings;
use crate::timing::SERVER_GRACE;
use toolq_core::text::{format_count, format_duration};
use toolq_core::types::{Outcome, ServerConfig, ServerTransport};

/// How often the end of a run looks whether a start has ended.
const START_POLL_INTERVAL: Duration = Duration::from_millis(1);

/// Calls the tools of the servers of a tools.yaml. It starts servers or connects to them, each when it is first needed.
pub(crate) struct McpRunner {
    pub(super) settings: Arc<EngineSettings>,
    pub(super) next_ticket: AtomicU64,
    pub(super) structured_content: StructuredContentReader,
    clients: HttpClients,
    /// The servers as tools.yaml has them since it was read again. A call that was checked before that starts no other.
    current: Mutex<Option<Vec<Arc<ServerConfig>>>>,
    /// By the server's name. Locked only to find a slot.
    slots: Mutex<HashMap<String, Arc<ServerSlot>>>,
    notices: ServerNotices,
}

/// The connection to one server. Locked while the server starts, so that it starts once, and while the one before it ends.
type ServerSlot = tokio::sync::Mutex<Option<OpenConnection>>;

impl McpRunner {
    pub(crate) fn new(settings: Arc<EngineSettings>) -> Self {
        Self {
            clients: HttpClients::new(Arc::clone(&settings)),
            settings,
            next_ticket: AtomicU64::default(),
            structured_content: StructuredContentReader::default(),
            current: Mutex::default(),
            slots: Mutex::default(),
            notices: ServerNotices::default(),
        }
    }

    /// Returns the connection to a server. `commands` starts its program if it isn't running. If the future is dropped,
    /// the next call starts the server.
    ///
    /// # Errors
    /// The outcome of the call that needs it, because the server can't be started.
    pub(crate) async fn connect(
        &self,
        server: &Arc<ServerConfig>,
        control: &RunControl,
        commands: &CommandRunner,
    ) -> Result<ServerConnection, Outcome> {
        let slot = self.slot(&server.name);
        let mut slot = slot.lock().await;
        let (mut earlier_starts, mut restart_budget) = (0, RestartBudget::default());
        let mut is_legacy = server.was_legacy;
        if !self.is_current(server) {
            return Err(refuse_start(server));
        }
        if let Some(open) = slot.as_mut() {
            if let Some(connection) = open.usable_connection(server) {
                return Ok(connection);
            }
            Box::pin(open.prepare_restart(server)).await?;
            earlier_starts = open.earlier_starts + 1;
            restart_budget = open.restart_budget.clone();
            is_legacy = open.is_legacy();
        }
        // Most calls find a connection, and shouldn't need memory for what starts a program.
        let transport = Box::pin(self.open_transport(server, commands)).await?;
        let life = ServerLife::begin(server, earlier_starts, self.notices.clone());
        let (sender, ended) = mpsc::channel();
        let (connection, task) = ServerConnection::open(
            server,
            transport,
            control.clone(),
            Arc::clone(&self.settings.mask),
            (life, sender),
            is_legacy,
        );
        *slot = Some(OpenConnection {
            server: Arc::clone(server),
            connection: Some(connection.clone()),
            ended,
            task,
            earlier_starts,
            restart_budget,
        });
        Ok(connection)
    }

    /// Returns the connection to a server if there is one that takes calls, and no task is about to replace it.
    pub(crate) fn find(&self, server: &Arc<ServerConfig>) -> Option<ServerConnection> {
        let slots = self.slots.lock();
        let mut slot = slots.get(&server.name)?.try_lock().ok()?;
        if !self.is_current(server) {
            return None;
        }
        slot.as_mut()?.usable_connection(server)
    }

    /// Lets every server end that isn't configured like one of these, once its calls have ended, and starts no other from now
    /// on.
    pub(crate) fn retain(&self, servers: &[Arc<ServerConfig>]) {
        *self.current.lock() = Some(servers.to_vec());
        let slots = self.slots.lock();
        for slot in slots.values() {
            // A slot that is locked belongs to a call that is about to use it.
            if let Ok(mut slot) = slot.try_lock()
                && let Some(open) = slot.as_mut()
            {
                let mut kept = servers.iter();
                if !kept.any(|server| server.is_same_as(&open.server)) {
                    open.connection = None;
                }
            }
        }
    }

    fn is_current(&self, server: &Arc<ServerConfig>) -> bool {
        let current = self.current.lock();
        let Some(servers) = current.as_ref() else {
            return true;
        };
        let mut servers = servers.iter();
        servers.any(|kept| Arc::ptr_eq(kept, server) || kept.is_same_as(server))
    }

    fn slot(&self, server: &str) -> Arc<ServerSlot> {
        let mut slots = self.slots.lock();
        Arc::clone(slots.entry(server.to_owned()).or_default())
    }

    async fn open_transport(
        &self,
        server: &ServerConfig,
        commands: &CommandRunner,
    ) -> Result<Transport, Outcome> {
        match &server.transport {
            ServerTransport::Program(program) => {
                let (child, pipes) = commands.start_server(program).await?;
                let EngineSettings {
                    output_dir, mask, ..
                } = &*self.settings;
                let process =
                    ServerProcess::new(child, pipes, output_dir.clone(), Arc::clone(mask));
                Ok(Transport::Program(Box::new(process)))
            }
            ServerTransport::Endpoint(endpoint) => {
                let endpoint = HttpEndpoint::resolve(
                    server,
                    endpoint,
                    &self.clients,
                    &self.settings.environment,
                )?;
                Ok(Transport::Endpoint(Box::new(HttpTransport::new(endpoint))))
            }
        }
    }

    /// Returns what happened to servers since this was last asked.
    pub(crate) fn take_notices(&self) -> Vec<ServerNotice> {
        self.notices.take()
    }

    /// Ends all servers, and waits until they have ended.
    pub(crate) fn close(&self) {
        let slots = mem::take(&mut *self.slots.lock());
        // On a runtime of one thread, the servers can't start or end while this thread waits. The supervisor kills them then.
        let can_wait = Handle::try_current().map_or(true, |runtime| {
            runtime.runtime_flavor() == RuntimeFlavor::MultiThread
        });
        let start_timeout = if can_wait {
            END_TIMEOUT
        } else {
            Duration::ZERO
        };
        let (senders, ended): (Vec<_>, Vec<_>) = slots
            .values()
            .filter_map(|slot| take_connection(slot, start_timeout))
            .map(|open| (open.connection, open.ended))
            .unzip();
        drop(senders);
        if can_wait {
            wait_for_ends(&ended);
        }
    }
}

/// Takes the connection out of a slot. If its server is just starting, that start ends first, unless it takes longer than
/// `timeout`.
fn take_connection(slot: &ServerSlot, timeout: Duration) -> Option<OpenConnection> {
    let deadline = Instant::now() + timeout;
    loop {
        if let Ok(mut slot) = slot.try_lock() {
            return slot.take();
        }
        if Instant::now() >= deadline {
            return None;
        }
        thread::sleep(START_POLL_INTERVAL);
    }
}

/// Returns the outcome of a call that was checked with a server which isn't configured like that any more.
fn refuse_start(server: &ServerConfig) -> Outcome {
    let detail = "tools.yaml was read again, and doesn't have this server any more, or has it with another configuration";
    Outcome::TransportFailed(transport_error(&server.name, false, detail.to_owned()))
}

/// Waits until all servers have ended, or for as long as they may take.
fn wait_for_ends(ended: &[mpsc::Receiver<()>]) {
    let deadline = Instant::now() + END_TIMEOUT;
    for end in ended {
        // A task that is gone has ended its server, too.
        let _ = end.recv_timeout(deadline.saturating_duration_since(Instant::now()));
    }
}

// The connection to one server: whether calls may use it, and when the server may be started again after it has ended.

/// How long all servers together may take to end: each first ends by itself, then after SIGTERM, then by SIGKILL.
const END_TIMEOUT: Duration = SERVER_GRACE.saturating_mul(3);

/// A connection, and the channel that reports the end of its server.
struct OpenConnection {
    server: Arc<ServerConfig>,
    /// `None` once no more calls use it: it ends when those that do have ended.
    connection: Option<ServerConnection>,
    ended: mpsc::Receiver<()>,
    task: JoinHandle<()>,
    /// How often the server was started before.
    earlier_starts: u32,
    restart_budget: RestartBudget,
}

impl OpenConnection {
    /// Returns whether the next connection asks for the legacy era first.
    fn is_legacy(&self) -> bool {
        let connection = self.connection.as_ref();
        connection.is_some_and(ServerConnection::is_legacy)
    }

    /// Returns the connection if calls of `server` can use it.
    fn usable_connection(&mut self, server: &Arc<ServerConfig>) -> Option<ServerConnection> {
        let connection = self.connection.as_ref()?;
        if connection.has_ended() {
            return None;
        }
        if !Arc::ptr_eq(&self.server, server) {
            if !self.server.is_same_as(server) {
                self.connection = None;
                return None;
            }
            self.server = Arc::clone(server);
        }
        self.connection.clone()
    }

    /// Waits until an idle server has ended, or one that is configured differently now, and counts the restart of one that has ended by itself.
    ///
    /// # Errors
    /// The server has ended too often.
    async fn prepare_restart(&mut self, server: &ServerConfig) -> Result<(), Outcome> {
        // There are never two. Once it has ended, it isn't waited for again.
        let Some(connection) = &self.connection else {
            if !self.task.is_finished() {
                let _ = (&mut self.task).await;
            }
            self.restart_budget = RestartBudget::default();
            return Ok(());
        };
        if connection.was_idle() {
            if !self.task.is_finished() {
                let _ = timeout(END_TIMEOUT, &mut self.task).await;
            }
        } else if server.program().is_some() && !connection.has_failed_probe() {
            let restart = self
                .restart_budget
                .count_restart(server.restarts, Instant::now());
            restart.map_err(|restarts| refuse_restart(server, restarts))?;
        }
        Ok(())
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

// How often a server may be started again.

/// For how long a restart counts. A server that dies once an hour is started again for as long as the run lasts; one that
/// dies at each start isn't.
const RESTART_WINDOW: Duration = Duration::from_mins(10);

/// The restarts of a server.
#[derive(Debug, Clone, Default)]
struct RestartBudget {
    /// When it was started again after it had ended by itself.
    restarts: Vec<Instant>,
}

impl RestartBudget {
    /// Counts a restart at `now`.
    ///
    /// # Errors
    /// There were already `limit` restarts within [`RESTART_WINDOW`].
    fn count_restart(&mut self, limit: u32, now: Instant) -> Result<(), u32> {
        self.restarts
            .retain(|restart| now.duration_since(*restart) < RESTART_WINDOW);
        let count = u32::try_from(self.restarts.len()).unwrap_or(u32::MAX);
        if count >= limit {
            return Err(count);
        }
        self.restarts.push(now);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn restarts_count_for_ten_minutes() {
        let (begin, minute) = (Instant::now(), Duration::from_mins(1));
        let mut budget = RestartBudget::default();
        assert_eq!(budget.count_restart(0, begin), Err(0));
        for minutes in [0, 4] {
            assert_eq!(budget.count_restart(2, begin + minute * minutes), Ok(()));
        }
        assert_eq!(budget.count_restart(2, begin + minute * 9), Err(2));
        assert_eq!(budget.count_restart(2, begin + minute * 10), Ok(()));
        assert_eq!(budget.count_restart(2, begin + minute * 13), Err(2));
        assert_eq!(budget.count_restart(2, begin + minute * 14), Ok(()));
    }
}
