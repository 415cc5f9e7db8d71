//! Runs attempts with the backend that their tool declares.

use crate::agent::AgentRunner;
use crate::attempt::{Attempt, AttemptFuture, AttemptResult, AttemptRunner};
use crate::command::CommandRunner;
use crate::control::RunControl;
use crate::host::HostRunner;
use crate::http::HttpRunner;
use crate::mcp::{McpRunner, ServerAnnouncement, ServerNotice};
use crate::output_reader::OutputReadRunner;
use crate::settings::EngineSettings;
use std::path::PathBuf;
use std::sync::Arc;
use toolq_core::check::{PathLimits, recheck_paths};
use toolq_core::types::{Backing, Invocation, Outcome, ServerConfig, ToolsConfig};

/// Runs attempts of all kinds of backings in tools.yaml.
pub(crate) struct BackendRunner {
    settings: Arc<EngineSettings>,
    /// Those of the tools file, and the session log.
    own_files: Vec<PathBuf>,
    commands: CommandRunner,
    requests: HttpRunner,
    agents: AgentRunner,
    servers: McpRunner,
    host: HostRunner,
}

impl BackendRunner {
    pub(crate) fn new(settings: &Arc<EngineSettings>, control: &RunControl) -> Self {
        Self {
            settings: Arc::clone(settings),
            own_files: [&*settings.tools.own_files, &*settings.log_files].concat(),
            commands: CommandRunner::new(Arc::clone(settings), control.groups.clone()),
            requests: HttpRunner::new(Arc::clone(settings)),
            agents: AgentRunner::new(Arc::clone(settings)),
            servers: McpRunner::new(Arc::clone(settings)),
            host: HostRunner(Arc::clone(settings)),
        }
    }

    /// Asks a server for its tools, and starts it if it isn't running.
    ///
    /// # Errors
    /// Why there is no list, without secrets.
    pub(crate) async fn list_tools(
        &self,
        server: &Arc<ServerConfig>,
        control: &RunControl,
    ) -> Result<Arc<ServerAnnouncement>, String> {
        self.servers
            .list_tools(server, control, &self.commands)
            .await
    }

    /// Runs attempts with new definitions from now on. Attempts that are already running keep theirs.
    pub(crate) fn change_tools(&self, tools: &Arc<ToolsConfig>) {
        self.agents.change_tools(tools);
        self.servers.retain(&tools.servers);
    }

    /// Returns what happened to servers since the last call.
    pub(crate) fn take_server_notices(&self) -> Vec<ServerNotice> {
        self.servers.take_notices()
    }

    /// Ends all servers, and waits until they have ended.
    pub(crate) fn end_servers(&self) {
        self.servers.close();
    }

    /// Ends everything. Nothing is running anymore, and nothing more will start.
    pub(crate) fn close(&self) {
        self.servers.close();
        self.commands.close();
    }

    /// The future of each backend is boxed alone, so that an attempt doesn't need the memory of the largest of them.
    async fn run_backend(&self, attempt: Box<Attempt>) -> AttemptResult {
        let job = Arc::clone(&attempt.job);
        let accepted = &job.accepted;
        // An earlier call of the turn may have made a symlink since the call was checked.
        let limits = PathLimits {
            root: &self.settings.tools.root,
            own_files: &self.own_files,
        };
        if let Err(rejection) = recheck_paths(accepted, limits) {
            return Outcome::Rejected(rejection).into();
        }
        if attempt.is_probe {
            return match (&accepted.probe, &accepted.tool.probe) {
                (Some(probe), backing) => {
                    Box::pin(self.commands.run(probe, backing.as_ref(), *attempt)).await
                }
                (None, _) => Outcome::NoBacking.into(),
            };
        }
        match &accepted.invocation {
            Some(Invocation::Command(command)) => {
                let backing = match &accepted.tool.backing {
                    Some(Backing::Command(backing)) => Some(backing),
                    _ => None,
                };
                Box::pin(self.commands.run(command, backing, *attempt)).await
            }
            Some(Invocation::Http(request)) => Box::pin(self.requests.run(request, *attempt)).await,
            Some(Invocation::Agent(task)) => Box::pin(self.agents.run(task, *attempt)).await,
            Some(Invocation::Mcp(call)) => self.servers.run(call, attempt, &self.commands).await,
            Some(Invocation::Completion(result)) => {
                self.agents.run_completion(result, &attempt).into()
            }
            Some(Invocation::ReadOutput(request)) => {
                Box::pin(OutputReadRunner::run(request, *attempt)).await
            }
            Some(Invocation::Host) => Box::pin(self.host.run(*attempt)).await,
            None => Outcome::NoBacking.into(),
        }
    }
}

impl AttemptRunner for BackendRunner {
    fn run(&self, attempt: Box<Attempt>) -> AttemptFuture<'_> {
        Box::pin(self.run_backend(attempt))
    }
}
