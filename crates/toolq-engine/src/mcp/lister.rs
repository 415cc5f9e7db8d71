//! Asks servers what tools they have, without calling any.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::backends::BackendRunner;
use crate::control::RunControl;
use crate::mcp::announcement::ServerAnnouncement;
use crate::settings::EngineSettings;
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
        let announcement = servers.list_tools(server, &self.control, commands).await?;
        Ok((announcement, begin.elapsed()))
    }

    /// Ends all servers, and waits until they have ended.
    pub fn close(&self) {
        self.backends.close_all();
    }
}
