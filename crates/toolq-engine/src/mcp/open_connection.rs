//! The connection to one server: whether calls may use it, and when the server may be started again after it has ended.

use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::mcp::connection::ServerConnection;
use crate::mcp::outcome::transport_error;
use crate::mcp::restart_budget::{RESTART_WINDOW, RestartBudget};
use crate::timing::SERVER_GRACE;
use toolq_core::text::{format_count, format_duration};
use toolq_core::types::{Outcome, ServerConfig};

/// How long all servers together may take to end: each first ends by itself, then after SIGTERM, then by SIGKILL.
pub(super) const END_TIMEOUT: Duration = SERVER_GRACE.saturating_mul(3);

/// A connection, and the channel that reports the end of its server.
pub(super) struct OpenConnection {
    pub(super) server: Arc<ServerConfig>,
    /// `None` once no more calls use it: it ends when those that do have ended.
    pub(super) connection: Option<ServerConnection>,
    pub(super) ended: mpsc::Receiver<()>,
    pub(super) task: JoinHandle<()>,
    /// How often the server was started before.
    pub(super) earlier_starts: u32,
    pub(super) restart_budget: RestartBudget,
}

impl OpenConnection {
    /// Returns the connection if calls of `server` can use it.
    pub(super) fn usable_connection(
        &mut self,
        server: &Arc<ServerConfig>,
    ) -> Option<ServerConnection> {
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
    pub(super) async fn prepare_restart(&mut self, server: &ServerConfig) -> Result<(), Outcome> {
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
        } else if server.program().is_some() {
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
