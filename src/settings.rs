//! What a session of `run`, `call`, `replay`, or `serve` runs with. The arguments of a command are resolved into this once, so
//! that nothing below the commands depends on the command line.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::args::{
    ApprovalFlags, ApprovalSettings, BudgetFlags, LogFlags, ProgressFlag, WatchFlags,
};
use crate::otlp::OtlpSettings;
use crate::plan_file::PlannedCalls;
use redact::Mask;
use toolq_core::check::CallChecker;
use toolq_core::os::Environment;
use toolq_core::types::ToolsConfig;
use toolq_engine::{BudgetLimits, EngineSettings, HostTools};
use toolq_log::memory::{RememberedIn, RunAgain};
use toolq_log::{LogError, SessionLog, state_dir};

/// The settings of a session.
#[derive(Debug, Clone)]
pub struct SessionSettings {
    /// Maximum number of calls that run at once; `None` is the number in tools.yaml.
    pub jobs: Option<NonZeroUsize>,
    pub log: LogSettings,
    /// The target of `--events`: a path or `fd:N`.
    pub events: Option<String>,
    /// The files that the command reads, which it doesn't write events to.
    pub inputs: Vec<PathBuf>,
    pub progress: ProgressFlag,
    pub budgets: BudgetLimits,
    pub approval: ApprovalSettings,
    /// Where spans and metrics go, if anywhere.
    pub(crate) otlp: Option<OtlpSettings>,
    /// The plan that is applied, whose calls it approves.
    pub plan: Option<Arc<PlannedCalls>>,
    /// What serves the tools of a host process, if there is one.
    pub host_tools: Option<Arc<dyn HostTools>>,
    /// Results go to stdout, so that a reader who closes it stops the run.
    pub prints_results: bool,
}

impl SessionSettings {
    /// Returns the ids of calls that flags name.
    pub fn named_calls(&self) -> Vec<String> {
        let mut named = match &self.approval {
            ApprovalSettings::Calls(ids) => ids.clone(),
            _ => Vec::new(),
        };
        if let RunAgain::Ids(ids) = &self.log.again {
            named.extend(ids.iter().cloned());
        }
        named
    }

    /// Settings without an approver, a plan, or the tools of a host. The results don't go to stdout.
    pub(crate) fn new(
        log: LogSettings,
        watch: &WatchFlags,
        budgets: &BudgetFlags,
        environment: &Environment,
    ) -> Self {
        Self {
            jobs: None,
            log,
            events: watch.events.clone(),
            inputs: Vec::new(),
            progress: watch.progress,
            budgets: budgets.into(),
            approval: ApprovalSettings::Nobody,
            otlp: OtlpSettings::new(&watch.otlp, environment),
            plan: None,
            host_tools: None,
            prints_results: false,
        }
    }
}

impl From<&ApprovalFlags> for ApprovalSettings {
    fn from(flags: &ApprovalFlags) -> Self {
        match (&flags.approve_with, &flags.approve) {
            (Some(program), _) => Self::Program(program.clone()),
            (None, Some(approver)) => approver.clone(),
            (None, None) => Self::Nobody,
        }
    }
}

// Which session log a session writes, and which of its calls run again.

/// The session log.
#[derive(Debug, Clone)]
pub struct LogSettings {
    pub target: LogTarget,
    /// Which calls run again although they have run before.
    pub again: RunAgain,
}

/// Where the session log is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LogTarget {
    /// No log is written.
    Disabled,
    /// A file in the default directory, which toolq names.
    DefaultDirectory,
    File(PathBuf),
}

impl LogTarget {
    /// `TOOLQ_LOG_FILE` names the log if the flag doesn't. As usual for paths, an empty variable is unset.
    pub(crate) fn new(flag: Option<PathBuf>, environment: &Environment) -> Self {
        let from_environment = || environment.get_os("TOOLQ_LOG_FILE").map(PathBuf::from);
        let named = flag.or_else(from_environment);
        match named.filter(|path| !path.as_os_str().is_empty()) {
            Some(file) => Self::File(file),
            None => Self::DefaultDirectory,
        }
    }

    /// Returns the memory that a run with this log belongs to. `None` if it has none.
    ///
    /// # Errors
    /// There is no folder for what toolq remembers.
    pub(crate) fn memory(
        &self,
        environment: &Environment,
    ) -> Result<Option<RememberedIn>, LogError> {
        let state_dir = state_dir(environment);
        Ok(match self {
            Self::Disabled => None,
            Self::File(path) => Some(RememberedIn::of_log(path, state_dir.ok().as_deref())),
            Self::DefaultDirectory => Some(RememberedIn::state(&state_dir?)),
        })
    }

    /// Returns the path of the log, if the user named it.
    pub fn path(&self) -> Option<&Path> {
        match self {
            Self::File(path) => Some(path),
            Self::Disabled | Self::DefaultDirectory => None,
        }
    }
}

impl LogSettings {
    pub(crate) fn new(flags: &LogFlags, environment: &Environment) -> Self {
        let target = if flags.no_log {
            LogTarget::Disabled
        } else {
            LogTarget::new(flags.file.clone(), environment)
        };
        let again = match &flags.new {
            None => RunAgain::None,
            Some(ids) if ids.is_empty() => RunAgain::All,
            Some(ids) => RunAgain::Ids(ids.iter().cloned().collect()),
        };
        Self { target, again }
    }
}

impl From<LogTarget> for LogSettings {
    /// Nothing runs again.
    fn from(target: LogTarget) -> Self {
        Self {
            target,
            again: RunAgain::None,
        }
    }
}

// What commands check calls, begin logs, and make engines with.

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
            settings
                .log_files
                .extend([log.path(), log.blob_dir()].map(Path::to_owned));
            settings.task_id = log.session_id();
            settings.held_file = log.lock();
            settings.memory = Some(Arc::new(log.clone()));
        }
        settings
    }
}
