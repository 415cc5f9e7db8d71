//! Builds a [`Toolq`] from its settings.

use std::collections::HashMap;
use std::future::Future;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use std::{fs, io};

use serde_json::value::RawValue;
use tokio::sync::Mutex;

use crate::callbacks::{ApprovalAnswer, ApprovalCallback, ApprovalQuestion};
use crate::error::{Error, ToolsFileProblem};
use crate::session::{EmbeddedSession, RuntimeEngine, ToolSet};
use crate::toolq::{Toolq, can_supervise};
use toolq_core::check::CallChecker;
use toolq_core::os::{Clock, Environment};
use toolq_core::tools_file::{self, HostToolDeclarations, HostToolProblem, ParsedToolsFile};
use toolq_core::tools_lock::{LockUse, ToolsLock};
use toolq_core::types::{Backing, CommandLimits, FileProblem, Severity, Tool, ToolsConfig};
use toolq_engine::{
    Approver, EngineSettings, HostCall, HostFuture, HostReply, SUPERVISOR_PROGRAM, check_machine,
};
use toolq_log::memory::{MemoryUse, RememberedIn};
use toolq_log::{LockedLog, SessionLog, SessionRecord, state_dir};

/// Builds a [`Toolq`].
#[derive(Debug, Default)]
#[must_use = "call `build`"]
pub struct ToolqBuilder {
    tools_file: Option<PathBuf>,
    log: Option<PathBuf>,
    concurrency: Option<NonZeroUsize>,
    functions: Vec<FunctionTool>,
    approve: Option<ApprovalCallback>,
}

impl Toolq {
    /// Returns a builder with the defaults: no log, and the concurrency of the tools file.
    pub fn builder() -> ToolqBuilder {
        ToolqBuilder::default()
    }
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
    /// it has handed to another thread continues, so a call of a tool that writes is in doubt then.
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

    /// Records what runs in this session log, which is created or continued. Its directory must exist. The log is the memory: a
    /// call that writes and has run in it is answered from there, and doesn't run again. Without it, no log is written, and
    /// nothing is remembered.
    pub fn log(mut self, path: impl Into<PathBuf>) -> Self {
        self.log = Some(path.into());
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
        let supervisor = can_supervise().then(|| PathBuf::from(SUPERVISOR_PROGRAM));
        if supervisor.is_some() {
            warnings.extend(check_machine(&tools)?);
        }
        let environment: Environment = std::env::vars_os().collect();
        let tools = Arc::new(tools);
        let set = ToolSet {
            checker: Arc::new(CallChecker::new(Arc::clone(&tools))),
            mask: Arc::new(tools.build_mask(&environment)),
            jobs: self.concurrency.unwrap_or(tools.concurrency),
            tools,
        };
        let log = self.begin_session(&set, &mut warnings)?;
        let mut settings = EngineSettings {
            jobs: set.jobs,
            supervisor_program: supervisor,
            log_files: state_dir(&environment).into_iter().collect(),
            host_tools: functions.map(|_| Arc::new(FunctionRunner::new(self.functions)) as Arc<_>),
            approver: self
                .approve
                .map(|callback| Approver::Person(Arc::new(callback.with_mask(&set.mask)))),
            ..EngineSettings::new(Arc::clone(&set.tools), &environment, Arc::clone(&set.mask))
        };
        if let Some(log) = &log {
            settings.output_dir = Some(log.blob_dir().to_owned());
            settings
                .log_files
                .extend([log.path(), log.blob_dir()].map(Path::to_owned));
            settings.task_id = log.session_id();
            settings.held_file = log.lock();
            settings.memory = Some(Arc::new(log.clone()));
        }
        let engine = RuntimeEngine::new(settings);
        let session = EmbeddedSession::new(set.clone(), engine, log);
        Ok(Toolq {
            set,
            warnings,
            session: Mutex::new(session),
        })
    }

    fn begin_session(
        &self,
        set: &ToolSet,
        warnings: &mut Vec<String>,
    ) -> Result<Option<SessionLog>, Error> {
        let Some(path) = &self.log else {
            return Ok(None);
        };
        let log = LockedLog::open(path)?;
        warnings.extend(log.durability_warning());
        let memory = (RememberedIn::log(path), MemoryUse::default());
        let tools_path = self.tools_file.as_deref();
        let tools_path = tools_path.unwrap_or(Path::new(NO_TOOLS_FILE));
        let session = SessionRecord::new(tools_path, &set.tools, set.jobs);
        let log = log.begin_session(session, memory, Arc::clone(&set.mask), Clock::system())?;
        Ok(Some(log))
    }
}

// Loads a tools file and the functions beside it.

/// Replaces the path of a tools file if all tools are functions. [`EMPTY_TOOLS_FILE`] replaces its text.
const NO_TOOLS_FILE: &str = "functions";
const EMPTY_TOOLS_FILE: &str = "version: 1\n";

/// Loads a tools file and the functions beside it, and the warnings as text.
fn load_tools(
    path: Option<&Path>,
    functions: Option<&HostToolDeclarations>,
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
    functions: Option<&HostToolDeclarations>,
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
            "`limits` of {} need a supervisor: call `toolq_embed::supervise()` first in `main`",
            limited.name
        )
    })
}

// Tools that are functions of the program.

/// A call of a tool that is a function of the program.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ToolCall {
    /// The id that the model gave the call.
    pub tool_use_id: String,
    /// The name of the tool.
    pub tool_name: String,
    /// The input, a JSON object. It matches the tool's schema, defaults are filled in, and secrets in it aren't masked.
    pub input: String,
    /// Counted from 1.
    pub attempt: u32,
    /// The same for all attempts of the call.
    pub idempotency_key: String,
    /// How long the attempt may take. After that, the future of the function is dropped.
    pub timeout: Duration,
}

/// What a function returns.
#[derive(Debug, Clone, PartialEq, Eq, derive_more::From)]
pub enum ToolOutput {
    /// A text.
    #[from(String, &str)]
    Text(String),
    /// JSON: any, if the tool declares `output: json`, or else a list of content blocks.
    #[from(skip)]
    Json(String),
}

type FunctionFuture = Pin<Box<dyn Future<Output = Result<ToolOutput, String>> + Send>>;

/// A function, and the keys that its tool would have in tools.yaml.
#[derive(Clone, derive_more::Debug)]
#[debug("FunctionTool({name})")]
struct FunctionTool {
    name: String,
    keys: String,
    function: Arc<dyn Fn(ToolCall) -> FunctionFuture + Send + Sync>,
}

impl FunctionTool {
    pub(crate) fn new<F, R, O>(name: String, keys: String, function: F) -> Self
    where
        F: Fn(ToolCall) -> R + Send + Sync + 'static,
        R: Future<Output = Result<O, String>> + Send + 'static,
        O: Into<ToolOutput>,
    {
        let function = move |call| {
            let result = function(call);
            Box::pin(async move { result.await.map(Into::into) }) as FunctionFuture
        };
        Self {
            name,
            keys,
            function: Arc::new(function),
        }
    }

    /// Returns the tool's name and keys as a member of a JSON object.
    ///
    /// # Errors
    /// The keys aren't a JSON object.
    fn declaration(&self) -> Result<String, HostToolProblem> {
        let keys = self.keys.trim();
        let is_object = keys.starts_with('{') && serde_json::from_str::<&RawValue>(keys).is_ok();
        let rest = keys
            .strip_prefix('{')
            .filter(|_| is_object)
            .map(str::trim_start);
        let Some(rest) = rest else {
            return Err(HostToolProblem {
                at: vec![self.name.clone()],
                message: "the keys of the tool aren't a JSON object".to_owned(),
                hint: Some(r#"write the keys that it would have in tools.yaml: {"effect": "read", "input_schema": {…}}"#.to_owned()),
            });
        };
        let comma = if rest == "}" { "" } else { "," };
        let name = serde_json::Value::from(self.name.as_str());
        Ok(format!("{name}:{{\"backing\":\"host\"{comma}{rest}"))
    }
}

/// Declares the functions as tools. Returns `None` if there are no functions.
///
/// # Errors
/// The keys of one aren't a JSON object.
fn declare_functions(
    functions: &[FunctionTool],
) -> Result<Option<HostToolDeclarations>, HostToolProblem> {
    if functions.is_empty() {
        return Ok(None);
    }
    let members = functions.iter().map(FunctionTool::declaration);
    let members: Vec<String> = members.collect::<Result<_, _>>()?;
    let json = format!("{{{}}}", members.join(","));
    let json = RawValue::from_string(json).map_err(|error| HostToolProblem {
        at: Vec::new(),
        message: format!("the tools can't be declared: {error}"),
        hint: None,
    })?;
    HostToolDeclarations::new(&json).map(Some)
}

/// Runs the functions.
#[derive(Debug)]
struct FunctionRunner(HashMap<String, FunctionTool>);

impl FunctionRunner {
    pub(crate) fn new(functions: Vec<FunctionTool>) -> Self {
        let named = functions.into_iter();
        Self(named.map(|tool| (tool.name.clone(), tool)).collect())
    }
}

impl toolq_engine::HostTools for FunctionRunner {
    fn run<'a>(&'a self, call: &'a HostCall) -> HostFuture<'a> {
        Box::pin(async move {
            let Some(tool) = self.0.get(&*call.call.tool_name) else {
                let why = "it has no such function".to_owned();
                return HostReply::Lost {
                    was_sent: false,
                    why,
                };
            };
            let result = (tool.function)(ToolCall {
                tool_use_id: call.call.tool_use_id.clone(),
                tool_name: call.call.tool_name.to_string(),
                input: call.input.text().to_owned(),
                attempt: call.attempt,
                idempotency_key: call.idempotency_key.to_string(),
                timeout: call.timeout,
            });
            reply(result.await)
        })
    }
}

fn reply(result: Result<ToolOutput, String>) -> HostReply {
    let text = |text: String| {
        let json = serde_json::Value::from(text).to_string();
        RawValue::from_string(json).ok()
    };
    match result {
        Ok(ToolOutput::Text(output)) => HostReply::Done {
            content: text(output),
            is_error: false,
        },
        Ok(ToolOutput::Json(json)) => match RawValue::from_string(json) {
            Ok(json) => HostReply::Done {
                content: Some(json),
                is_error: false,
            },
            Err(error) => HostReply::Done {
                content: text(format!("the function returned invalid JSON: {error}")),
                is_error: true,
            },
        },
        Err(message) => HostReply::Done {
            content: text(message),
            is_error: true,
        },
    }
}
