//! What commands check calls, begin logs, and make engines with.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use redact::Mask;
use toolq_core::check::CallChecker;
use toolq_core::os::Environment;
use toolq_core::types::ToolsConfig;
use toolq_engine::EngineSettings;
use toolq_log::{SessionHeader, SessionLog};

/// The tools, what checks their calls and masks what they say, and how their programs are started.
#[derive(Debug, Clone)]
pub(crate) struct CallSetup {
    pub(crate) tools: Arc<ToolsConfig>,
    pub(crate) checker: Arc<CallChecker>,
    pub(crate) mask: Arc<Mask>,
    /// How many calls may run at the same time.
    pub(crate) jobs: NonZeroUsize,
    environment: Arc<Environment>,
    supervisor_program: Option<PathBuf>,
}

impl CallSetup {
    /// With `jobs`, they take the place of the concurrency of the tools file. `supervisor_program` is this program, if it can
    /// be started again as a supervisor.
    pub(crate) fn new(
        tools: Arc<ToolsConfig>,
        jobs: Option<NonZeroUsize>,
        environment: &Arc<Environment>,
        supervisor_program: Option<PathBuf>,
    ) -> Self {
        Self {
            checker: Arc::new(CallChecker::new(Arc::clone(&tools))),
            mask: Arc::new(tools.build_mask(environment)),
            jobs: jobs.unwrap_or(tools.concurrency),
            tools,
            environment: Arc::clone(environment),
            supervisor_program,
        }
    }

    /// Returns the settings of an engine without a log.
    pub(crate) fn engine_settings(&self) -> EngineSettings {
        let (tools, mask) = (Arc::clone(&self.tools), Arc::clone(&self.mask));
        EngineSettings {
            jobs: self.jobs,
            supervisor_program: self.supervisor_program.clone(),
            ..EngineSettings::new(tools, &self.environment, mask)
        }
    }

    /// Returns the settings of an engine that writes to `log` and asks it what it remembers.
    pub(crate) fn logged_engine_settings(&self, log: Option<&SessionLog>) -> EngineSettings {
        let mut settings = self.engine_settings();
        if let Some(log) = log {
            settings.output_dir = Some(log.blob_dir().to_owned());
            settings.log_files = vec![log.path().to_owned(), log.blob_dir().to_owned()];
            settings.task_id = log.session_id();
            settings.held_file = log.lock();
            settings.memory = Some(Arc::new(log.clone()));
        }
        settings
    }

    /// Returns the header of a session with these tools, which come from the file at `tools_path`.
    pub(crate) fn session_header(&self, tools_path: &Path) -> SessionHeader {
        SessionHeader::new(tools_path, &self.tools, self.jobs)
    }
}
