//! Asks servers what tools they have, without calling any.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::backends::BackendRunner;
use crate::command::CommandRunner;
use crate::control::RunControl;
use crate::mcp::announcement::ServerAnnouncement;
use crate::mcp::runner::McpRunner;
use crate::settings::EngineSettings;
use toolq_core::answer::failure_cause;
use toolq_core::types::ServerConfig;

/// Starts servers and lists their tools.
pub struct ServerLister {
    backends: Arc<BackendRunner>,
    control: RunControl,
}

impl ServerLister {
    /// Creates a lister. Nothing is started yet.
    pub fn new(settings: &EngineSettings) -> Self {
        let backends = Arc::new(BackendRunner::new(settings));
        Self {
            control: RunControl::new(Arc::clone(&backends) as _),
            backends,
        }
    }

    /// Starts a server, unless it is running, and asks for its tools. Returns how long that took, too.
    ///
    /// # Errors
    /// Why there is no list, without secrets.
    pub async fn list(
        &self,
        server: &Arc<ServerConfig>,
    ) -> Result<(Arc<ServerAnnouncement>, Duration), String> {
        let begin = Instant::now();
        let (servers, commands) = self.backends.server_runners();
        let announcement = self.ask(server, servers, commands).await?;
        Ok((announcement, begin.elapsed()))
    }

    async fn ask(
        &self,
        server: &Arc<ServerConfig>,
        servers: &McpRunner,
        commands: &CommandRunner,
    ) -> Result<Arc<ServerAnnouncement>, String> {
        let cause = |outcome| {
            let why = failure_cause(&outcome);
            why.unwrap_or_else(|| "it can't be started".to_owned())
        };
        let connection = servers.connect(server, &self.control, commands).await;
        match connection.map_err(cause)?.list_tools().await {
            Ok(announcement) => Ok(announcement),
            Err(reply) => {
                Err(reply.describe(|errno| cause(commands.server_start_failure(server, errno))))
            }
        }
    }

    /// Ends all servers, and waits until they have ended.
    pub fn close(&self) {
        self.backends.close_all();
    }
}
