//! Builds a [`Toolq`] from its settings.

use std::fs;
use std::future::Future;
use std::io;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use redact::Mask;
use tokio::sync::Mutex;
use toolq_core::check::CallChecker;
use toolq_core::os::{Clock, Environment};
use toolq_core::tools_file::{self, HostToolProblem, HostTools, ParsedToolsFile};
use toolq_core::tools_lock::{LockUse, ToolsLock};
use toolq_core::types::{Backing, CommandLimits, FileProblem, Severity, Tool, ToolsConfig};
use toolq_engine::{Approver, EngineSettings, find_untrackable};
use toolq_log::{BeginMode, PreparedLog, SessionHeader, SessionLog, TaskKey};

use crate::embed::approval::{ApprovalAnswer, ApprovalCallback, ApprovalQuestion};
use crate::embed::error::{Error, ToolsFileProblem};
use crate::embed::function_tools::{
    FunctionRunner, FunctionTool, ToolCall, ToolOutput, declare_functions,
};
use crate::embed::runtime_engine::RuntimeEngine;
use crate::embed::session::EmbeddedSession;
use crate::embed::toolq::{Toolq, can_supervise};

/// The largest message, in bytes. `toolq run --max-input` has the same default.
const MAX_MESSAGE_BYTES: u64 = 256 << 20;

/// What stands in place of the path and the text of a tools file if all tools are functions.
const NO_TOOLS_FILE: &str = "functions";
const EMPTY_TOOLS_FILE: &str = "version: 1\n";

/// Builds a [`Toolq`].
#[derive(Debug, Default)]
#[must_use = "call `build`"]
pub struct ToolqBuilder {
    tools_file: Option<PathBuf>,
    log: Option<PathBuf>,
    abandon_unfinished: bool,
    concurrency: Option<NonZeroUsize>,
    functions: Vec<FunctionTool>,
    approve: Option<ApprovalCallback>,
}

impl ToolqBuilder {
    /// Reads the tools from this file. Required unless there are [functions](Self::tool).
    pub fn tools_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.tools_file = Some(path.into());
        self
    }

    /// Adds a tool that is a function of this program. `keys` is a JSON object with the keys that it would have in a
    /// tools file: `description`, `input_schema`, `effect`, `timeout` and so on. `rules` and `defaults` of the tools file apply.
    ///
    /// Its calls are like any others: they are checked, ordered, approved, limited in time and logged. `Err` is the text of an
    /// error that the model reads.
    ///
    /// When a call times out or is canceled, the future of the function is dropped, which stops it where it waits. Work that
    /// it has handed to another thread goes on, so a call of a tool that writes is in doubt then.
    pub fn tool<F, R, O>(
        mut self,
        name: impl Into<String>,
        keys: impl Into<String>,
        function: F,
    ) -> Self
    where
        F: Fn(ToolCall) -> R + Send + Sync + 'static,
        R: Future<Output = Result<O, String>> + Send + 'static,
        O: Into<ToolOutput>,
    {
        let tool = FunctionTool::new(name.into(), keys.into(), function);
        self.functions.push(tool);
        self
    }

    /// Asks this function about each call that needs an approval. Without it, such calls are answered "needs approval". The
    /// answer is recorded in the log before the call starts.
    pub fn approve<F, R>(mut self, ask: F) -> Self
    where
        F: Fn(ApprovalQuestion) -> R + Send + Sync + 'static,
        R: Future<Output = ApprovalAnswer> + Send + 'static,
    {
        self.approve = Some(ApprovalCallback::new(ask));
        self
    }

    /// Records what runs in this session log, which is created or continued. Its directory must exist. Without it, no
    /// log is written.
    pub fn log(mut self, path: impl Into<PathBuf>) -> Self {
        self.log = Some(path.into());
        self
    }

    /// Starts a new session even if the last one in the log is unfinished. Its unfinished calls are never run again, not
    /// even by `toolq run --resume`.
    pub fn abandon_unfinished(mut self) -> Self {
        self.abandon_unfinished = true;
        self
    }

    /// Runs at most this many calls at once, instead of the number in the tools file.
    pub fn concurrency(mut self, calls: NonZeroUsize) -> Self {
        self.concurrency = Some(calls);
        self
    }

    /// Loads the tools file and opens the log.
    ///
    /// # Errors
    /// The tools file can't be read, or has errors (all are reported, with line and column); a function can't be declared; or the
    /// log can't be used.
    pub fn build(self) -> Result<Toolq, Error> {
        let functions = declare_functions(&self.functions);
        let functions = functions.map_err(|problem| Error::InvalidFunctions(vec![problem]))?;
        let (tools, mut warnings) = load_tools(self.tools_file.as_deref(), functions.as_ref())?;
        warnings.extend(unsupervised_limits(&tools));
        if can_supervise()
            && let Some(name) = find_untrackable(&tools)
        {
            return Err(Error::UntrackableProcesses(name.to_owned()));
        }
        let environment: Environment = std::env::vars_os().collect();
        let mask = Arc::new(tools.build_mask(&environment));
        let concurrency = self.concurrency.unwrap_or(tools.concurrency);
        let log = match &self.log {
            Some(log) => {
                let log = self.open_log(log, &mut warnings)?;
                let path = self.tools_file.as_deref();
                let path = path.unwrap_or(Path::new(NO_TOOLS_FILE));
                Some(begin_session(log, path, &tools, concurrency, &mask)?)
            }
            None => None,
        };
        let tools = Arc::new(tools);
        let checker = Arc::new(CallChecker::new(Arc::clone(&tools)));
        let mut settings = EngineSettings {
            jobs: concurrency,
            host_tools: functions.map(|_| Arc::new(FunctionRunner::new(self.functions)) as Arc<_>),
            approver: self
                .approve
                .map(|callback| Approver::Person(Arc::new(callback.with_mask(&mask)))),
            supervisor_program: can_supervise().then(|| PathBuf::from("/proc/self/exe")),
            ..EngineSettings::new(Arc::clone(&tools), &environment, Arc::clone(&mask))
        };
        if let Some(log) = &log {
            settings.output_dir = Some(log.blob_dir().to_owned());
            settings.log_files = vec![log.path().to_owned(), log.blob_dir().to_owned()];
            settings.task_id = log.task_id();
        }
        let session = EmbeddedSession::new(
            (Arc::clone(&tools), Arc::clone(&checker), Arc::clone(&mask)),
            RuntimeEngine::new(settings),
            log,
            MAX_MESSAGE_BYTES,
        );
        Ok(Toolq {
            tools,
            checker,
            mask,
            concurrency,
            max_message_bytes: MAX_MESSAGE_BYTES,
            warnings,
            session: Mutex::new(session),
        })
    }

    fn open_log(&self, path: &Path, warnings: &mut Vec<String>) -> Result<PreparedLog, Error> {
        let mode = if self.abandon_unfinished {
            BeginMode::ForceNewTask
        } else {
            BeginMode::NewTask
        };
        let log = PreparedLog::open(path, mode, TaskKey::default())?;
        if !self.abandon_unfinished {
            log.check_finished()?;
        }
        warnings.extend(log.durability_warning());
        let in_doubt = log.in_doubt_calls();
        warnings.extend(in_doubt.in_log_order().iter().map(|call| {
            let (id, path) = (in_doubt.resolve_id(call), path.display());
            format!(
                "an earlier run left a call in doubt; `toolq log resolve {id} {path}` resolves it"
            )
        }));
        Ok(log)
    }
}

/// Loads a tools file and the functions beside it, and the warnings as text.
fn load_tools(
    path: Option<&Path>,
    functions: Option<&HostTools>,
) -> Result<(ToolsConfig, Vec<String>), Error> {
    let named = path.unwrap_or(Path::new(NO_TOOLS_FILE));
    let unreadable = |source| Error::UnreadableToolsFile {
        path: named.to_owned(),
        source,
    };
    let text = match path {
        Some(path) => fs::read_to_string(path).map_err(unreadable)?,
        None if functions.is_some() => EMPTY_TOOLS_FILE.to_owned(),
        None => return Err(Error::NoToolsFile),
    };
    let path = named;
    let current_dir = std::env::current_dir().map_err(unreadable)?;
    let dir = match path.parent() {
        Some(parent) => current_dir.join(parent),
        None => current_dir.clone(),
    };
    let lock = ToolsLock::read(path)
        .map_err(|why| unreadable(io::Error::new(io::ErrorKind::InvalidData, why)))?;
    let texts = (text.as_str(), functions);
    let lock = LockUse::from(&lock);
    let mut parsed = tools_file::parse_with_host_tools(texts, &dir, &current_dir, lock);
    if parsed.tools.is_none()
        && let Some(problems) = function_problems(functions, &parsed)
    {
        return Err(Error::InvalidFunctions(problems));
    }
    let mut tools = parsed.tools.take();
    let ParsedToolsFile {
        problems, sources, ..
    } = parsed;
    if let Some(tools) = &mut tools {
        let files = [path.to_owned(), ToolsLock::path_beside(path)];
        tools
            .own_files
            .extend(files.map(|file| current_dir.join(file)));
    }
    let located = |severity: Severity| {
        let sources = &sources;
        let problems = problems
            .iter()
            .filter(move |problem: &&FileProblem| problem.severity == severity);
        problems.map(|problem| ToolsFileProblem::locate(problem, sources, path))
    };
    let Some(tools) = tools else {
        return Err(Error::InvalidToolsFile {
            path: path.to_owned(),
            problems: located(Severity::Error).collect(),
        });
    };
    let warnings = located(Severity::Warning);
    Ok((tools, warnings.map(|warning| warning.to_string()).collect()))
}

/// Returns what is wrong with the functions, if nothing is wrong with the file itself.
fn function_problems(
    functions: Option<&HostTools>,
    parsed: &ParsedToolsFile,
) -> Option<Vec<HostToolProblem>> {
    let mut errors = parsed
        .problems
        .iter()
        .filter(|problem| problem.severity == Severity::Error);
    let found = functions?.find_errors(parsed);
    let is_of_function = |problem: &FileProblem| parsed.sources.is_from_host(problem.span);
    (!found.is_empty() && errors.all(is_of_function)).then_some(found)
}

/// Warns about tools whose resource limits need a supervisor, if this program can't be one.
fn unsupervised_limits(tools: &ToolsConfig) -> Option<String> {
    let has_limits = |tool: &&Arc<Tool>| match &tool.backing {
        Some(Backing::Command(command)) => command.limits != CommandLimits::default(),
        _ => false,
    };
    let limited = tools.tools.iter().find(has_limits)?;
    (!can_supervise()).then(|| {
        format!(
            "`limits` of {} need a supervisor: call `toolq::supervise()` first in `main`",
            limited.name
        )
    })
}

fn begin_session(
    log: PreparedLog,
    tools_path: &Path,
    tools: &ToolsConfig,
    concurrency: NonZeroUsize,
    mask: &Arc<Mask>,
) -> Result<SessionLog, Error> {
    let header = SessionHeader::new(tools_path, tools, concurrency);
    Ok(log.begin_session(&header, Arc::clone(mask), Clock::system())?)
}
