//! Runs command backings and starts the programs of servers, with the supervisor that they share.

use std::path::PathBuf;
use std::sync::Arc;

use crate::attempt::{Attempt, AttemptResult};
use crate::command::child::ChildProcess;
use crate::command::pipe_io::CommandStreams;
use crate::command::pipes::ParentEnds;
use crate::command::process_groups::ProcessGroups;
use crate::command::run_to_exit::run_to_exit;
use crate::command::spec::CommandSpec;
use crate::output::{OutputCollector, TailCapture};
use crate::settings::EngineSettings;
use procfence::ReaperPools;
use redact::Mask;

use toolq_core::check::build_server_command;
use toolq_core::os::{Environment, ProcessIdentity};
use toolq_core::types::{CommandBacking, CommandInvocation, Outcome, ServerConfig, ToolsConfig};

/// How many bytes of the end of stderr are kept.
const STDERR_TAIL_BYTES: usize = 4 << 10;

/// Runs the commands of a tools.yaml.
#[derive(Debug)]
pub(crate) struct CommandRunner {
    pub(crate) tools: Arc<ToolsConfig>,
    pub(crate) environment: Arc<Environment>,
    mask: Arc<Mask>,
    outputs: Option<PathBuf>,
    /// The reapers that start the programs. Without them, toolq starts the programs itself.
    pub(super) reaper_pools: Option<ReaperPools>,
    /// All running programs, so that they can be suspended and resumed.
    pub(super) groups: ProcessGroups,
}

impl CommandRunner {
    pub(crate) fn new(settings: &EngineSettings) -> Self {
        let owner = ProcessIdentity::current().reaper_argument();
        let program = settings.supervisor_program.as_deref();
        let reaper_pools = program.and_then(|program| ReaperPools::new(program, &owner));
        if let (Some(pools), Some(file)) = (&reaper_pools, &settings.held_file) {
            // Without descriptors, no program can be started either.
            let _ = pools.hold(file);
        }
        Self {
            tools: Arc::clone(&settings.tools),
            environment: Arc::clone(&settings.environment),
            mask: Arc::clone(&settings.mask),
            outputs: settings.output_dir.clone(),
            reaper_pools,
            groups: ProcessGroups::default(),
        }
    }

    /// Suspends all running programs.
    pub(crate) fn suspend(&self) {
        self.groups.suspend();
    }

    /// Resumes all programs.
    pub(crate) fn resume(&self) {
        self.groups.resume();
    }

    /// Stops the supervisors.
    pub(crate) fn close(&self) {
        if let Some(reaper_pools) = &self.reaper_pools {
            reaper_pools.close();
        }
    }

    /// Starts the program of a server.
    ///
    /// # Errors
    /// The outcome of the call that needs it, because nothing was started.
    pub(crate) async fn start_server(
        &self,
        program: &CommandBacking,
    ) -> Result<(ChildProcess, ParentEnds), Outcome> {
        let command = build_server_command(program);
        let spec = CommandSpec::for_server(self, &command, program)?;
        let (mut child, pipes) = spec.start(self.reaper_pools.as_ref()).await?;
        child.register(&self.groups);
        Ok((child, pipes))
    }

    /// Returns the outcome of a call whose server could not be started, for the system's error number.
    pub(crate) fn server_start_failure(&self, server: &ServerConfig, errno: i32) -> Outcome {
        let Some(program) = server.program() else {
            return Outcome::InternalError(format!("{} has no program", server.name));
        };
        let command = build_server_command(program);
        match CommandSpec::for_server(self, &command, program) {
            Ok(spec) => spec.start_failure(errno),
            Err(outcome) => outcome,
        }
    }

    /// Runs one attempt of `command`, which was rendered from `backing`.
    pub(crate) async fn run(
        &self,
        command: &CommandInvocation,
        backing: Option<&CommandBacking>,
        attempt: Attempt,
    ) -> AttemptResult {
        let job = Arc::clone(&attempt.job);
        let tool = &job.accepted.tool;
        let spec = match CommandSpec::new(self, (command, backing), &job, &attempt) {
            Ok(spec) => spec,
            Err(outcome) => return outcome.into(),
        };
        let (mut child, pipes) = match spec.start(self.reaper_pools.as_ref()).await {
            Ok(started) => started,
            Err(outcome) => return outcome.into(),
        };
        child.register(&self.groups);
        let output = OutputCollector::for_command(tool, self.outputs.as_ref(), &self.mask)
            .with_counter(attempt.output_counter.clone());
        let stderr_tail = TailCapture::new(
            STDERR_TAIL_BYTES,
            Arc::clone(&self.mask),
            attempt.output_counter.clone(),
        );
        let progress = attempt.progress.clone();
        let streams =
            CommandStreams::new(pipes, output, stderr_tail, progress, Arc::clone(&self.mask));
        run_to_exit(child, streams, &spec, tool, attempt).await
    }
}
