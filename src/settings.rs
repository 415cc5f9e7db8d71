//! What a session of `run`, `call`, `replay`, or `serve` runs with. The arguments of a command are resolved into this once, so
//! that nothing below the commands depends on the command line.

mod log;

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;

use crate::args::shared_flags::{ApprovalFlags, BudgetFlags, WatchFlags};
use crate::args::values::{ApproveFlag, ProgressFlag};
use crate::otlp::OtlpSettings;
use crate::plan_file::PlannedCalls;
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

    /// Settings without an approver, a plan, or the tools of a host. The results don't go to stdout.
    pub(crate) fn new(log: LogSettings, watch: WatchSettings, budgets: &BudgetFlags) -> Self {
        Self {
            jobs: None,
            log,
            watch,
            budgets: budgets.into(),
            approval: ApprovalSettings::Nobody,
            otlp: None,
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
