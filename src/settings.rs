//! What a session of `run`, `agent`, or `replay` runs with. The arguments of a command are resolved into this once, so
//! that nothing below the commands depends on the command line.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use crate::args::{
    AgentArguments, LogFlags, ProgressFlag, ReplayArguments, RunArguments, WatchFlags,
};
use toolq_engine::BudgetLimits;
use toolq_log::{BeginMode, SyncPolicy};

/// The settings of a session.
#[derive(Debug, Clone)]
pub struct SessionSettings {
    /// Maximum number of calls that run at once; `None` is the number in tools.yaml.
    pub jobs: Option<NonZeroUsize>,
    pub log: LogSettings,
    pub watch: WatchSettings,
    pub budgets: BudgetLimits,
    /// Results go to stdout, so that a reader who closes it stops the run.
    pub prints_results: bool,
}

/// The session log.
#[derive(Debug, Clone)]
pub struct LogSettings {
    pub target: LogTarget,
    pub mode: BeginMode,
    /// What is missing runs even if the tools have changed since.
    pub accept_changes: bool,
    pub sync: SyncPolicy,
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

/// Where to report what happens.
#[derive(Debug, Clone)]
pub struct WatchSettings {
    /// The target of `--events`: a path or `fd:N`.
    pub events: Option<String>,
    pub progress: ProgressFlag,
}

impl LogTarget {
    /// Returns the path of the log, if the user named it.
    pub fn path(&self) -> Option<&Path> {
        match self {
            Self::File(path) => Some(path),
            Self::Disabled | Self::DefaultDirectory => None,
        }
    }
}

impl From<&RunArguments> for SessionSettings {
    fn from(arguments: &RunArguments) -> Self {
        Self {
            jobs: arguments.input.jobs,
            log: (&arguments.log).into(),
            watch: (&arguments.watch).into(),
            budgets: (&arguments.budgets).into(),
            prints_results: true,
        }
    }
}

impl From<&AgentArguments> for SessionSettings {
    fn from(arguments: &AgentArguments) -> Self {
        Self {
            jobs: arguments.jobs,
            log: (&arguments.log).into(),
            watch: (&arguments.watch).into(),
            budgets: (&arguments.budgets).into(),
            prints_results: true,
        }
    }
}

impl From<&ReplayArguments> for SessionSettings {
    fn from(arguments: &ReplayArguments) -> Self {
        let log = arguments.log.clone();
        Self {
            jobs: arguments.jobs,
            log: LogSettings {
                target: log.map_or(LogTarget::Disabled, LogTarget::File),
                mode: BeginMode::NewTask,
                accept_changes: false,
                sync: SyncPolicy::default(),
            },
            watch: WatchSettings {
                events: None,
                progress: ProgressFlag::None,
            },
            budgets: (&arguments.budgets).into(),
            prints_results: false,
        }
    }
}

impl From<&LogFlags> for LogSettings {
    fn from(flags: &LogFlags) -> Self {
        let target = match &flags.file {
            _ if flags.no_log => LogTarget::Disabled,
            Some(file) => LogTarget::File(file.clone()),
            None => LogTarget::DefaultDirectory,
        };
        let mode = match (flags.resume, flags.new) {
            (true, _) => BeginMode::Resume,
            (_, true) => BeginMode::ForceNewTask,
            _ => BeginMode::NewTask,
        };
        Self {
            target,
            mode,
            accept_changes: flags.accept_changes,
            sync: flags.sync.into(),
        }
    }
}

impl From<&WatchFlags> for WatchSettings {
    fn from(flags: &WatchFlags) -> Self {
        Self {
            events: flags.events.clone(),
            progress: flags.progress,
        }
    }
}
