//! What a session of `run`, `call`, `replay`, or `serve` runs with. The arguments of a command are resolved into this once, so
//! that nothing below the commands depends on the command line.

mod log;

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;

use crate::args::{
    ApprovalFlags, ApproveFlag, CallArguments, ProgressFlag, ReplayArguments, RunArguments,
    ServeArguments, WatchFlags,
};
use crate::otlp::OtlpSettings;
use crate::plan_file::PlannedCalls;
use toolq_core::os::Environment;
use toolq_engine::{ApprovalPrompt, BudgetLimits, HostTools};
use toolq_log::memory::RunAgain;

pub use log::{LogSettings, LogTarget};

/// The settings of a session.
#[derive(Debug, Clone)]
pub struct SessionSettings {
    /// Maximum number of calls that run at once; `None` is the number in tools.yaml.
    pub jobs: Option<NonZeroUsize>,
    pub log: LogSettings,
    pub watch: WatchSettings,
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

/// Who approves calls that start only after a yes.
#[derive(Debug, Clone, Default)]
pub enum ApprovalSettings {
    /// There is no approver, so such calls don't start.
    #[default]
    Nobody,
    /// A person on the terminal.
    Terminal,
    /// The user who started toolq, for all calls in advance.
    All,
    /// The user who started toolq, for the calls with these ids.
    Calls(Vec<String>),
    Program(PathBuf),
    /// The program at the other end of stdin and stdout.
    Prompt(Arc<dyn ApprovalPrompt>),
}

/// Where to report what happens.
#[derive(Debug, Clone)]
pub struct WatchSettings {
    /// The target of `--events`: a path or `fd:N`.
    pub events: Option<String>,
    /// The files that the command reads, which it doesn't write events to.
    pub inputs: Vec<PathBuf>,
    pub progress: ProgressFlag,
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

    /// The settings of `toolq run`.
    pub fn of_run(arguments: &RunArguments, environment: &Environment) -> Self {
        Self {
            jobs: arguments.input.jobs,
            log: LogSettings::new(&arguments.log, environment),
            watch: WatchSettings {
                inputs: arguments
                    .input
                    .files
                    .iter()
                    .chain(&arguments.plan)
                    .cloned()
                    .collect(),
                ..(&arguments.watch).into()
            },
            budgets: (&arguments.budgets).into(),
            approval: (&arguments.approval).into(),
            otlp: OtlpSettings::new(&arguments.watch.otlp, environment),
            plan: None,
            host_tools: None,
            prints_results: true,
        }
    }

    /// The settings of `toolq call`.
    pub fn of_call(arguments: &CallArguments, environment: &Environment) -> Self {
        Self {
            jobs: arguments.jobs,
            log: LogSettings::new(&arguments.log, environment),
            watch: (&arguments.watch).into(),
            budgets: (&arguments.budgets).into(),
            approval: (&arguments.approval).into(),
            otlp: OtlpSettings::new(&arguments.watch.otlp, environment),
            plan: None,
            host_tools: None,
            prints_results: true,
        }
    }

    /// The settings of `toolq serve`.
    pub fn of_serve(arguments: &ServeArguments, environment: &Environment) -> Self {
        Self {
            jobs: arguments.jobs,
            log: LogTarget::new(arguments.log.clone(), environment).into(),
            watch: (&arguments.watch).into(),
            budgets: (&arguments.budgets).into(),
            approval: ApprovalSettings::Nobody,
            otlp: OtlpSettings::new(&arguments.watch.otlp, environment),
            plan: None,
            host_tools: None,
            // Over HTTP, nothing goes to stdout.
            prints_results: arguments.http.is_none(),
        }
    }

    /// The settings of `toolq replay`, which writes a log only on request.
    pub fn of_replay(arguments: &ReplayArguments, environment: &Environment) -> Self {
        let log = arguments.log.clone();
        Self {
            jobs: arguments.jobs,
            log: log.map_or(LogTarget::Disabled, LogTarget::File).into(),
            watch: WatchSettings {
                events: None,
                inputs: Vec::new(),
                progress: ProgressFlag::None,
            },
            budgets: (&arguments.budgets).into(),
            approval: ApprovalSettings::Nobody,
            otlp: OtlpSettings::new(&arguments.otlp, environment),
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
            (None, Some(ApproveFlag::Ask)) => Self::Terminal,
            (None, Some(ApproveFlag::All)) => Self::All,
            (None, Some(ApproveFlag::Calls(ids))) => Self::Calls(ids.clone()),
            (None, None) => Self::Nobody,
        }
    }
}

impl From<&WatchFlags> for WatchSettings {
    fn from(flags: &WatchFlags) -> Self {
        Self {
            events: flags.events.clone(),
            inputs: Vec::new(),
            progress: flags.progress,
        }
    }
}
