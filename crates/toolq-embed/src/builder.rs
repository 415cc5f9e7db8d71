//! Builds a [`Toolq`] from its settings.

use std::future::Future;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::sync::Mutex;
use toolq_core::check::CallChecker;
use toolq_core::os::{Clock, Environment};
use toolq_engine::{Approver, EngineSettings, SUPERVISOR_PROGRAM, check_machine};
use toolq_log::memory::{MemoryUse, RememberedIn};
use toolq_log::{LockedLog, SessionHeader, SessionLog};

use crate::approval::{ApprovalAnswer, ApprovalCallback, ApprovalQuestion};
use crate::error::Error;
use crate::function_tools::{
    FunctionRunner, FunctionTool, ToolCall, ToolOutput, declare_functions,
};
use crate::runtime_engine::RuntimeEngine;
use crate::session::{EmbeddedSession, ToolSet};
use crate::toolq::{Toolq, can_supervise};
use crate::tools_loading::{NO_TOOLS_FILE, load_tools, unsupervised_limits};

/// The largest message, in bytes. `toolq run --max-input` has the same default.
const MAX_MESSAGE_BYTES: u64 = 256 << 20;

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
            host_tools: functions.map(|_| Arc::new(FunctionRunner::new(self.functions)) as Arc<_>),
            approver: self
                .approve
                .map(|callback| Approver::Person(Arc::new(callback.with_mask(&set.mask)))),
            ..EngineSettings::new(Arc::clone(&set.tools), &environment, Arc::clone(&set.mask))
        };
        if let Some(log) = &log {
            settings.output_dir = Some(log.blob_dir().to_owned());
            settings.log_files = vec![log.path().to_owned(), log.blob_dir().to_owned()];
            settings.task_id = log.session_id();
            settings.held_file = log.lock();
            settings.memory = Some(Arc::new(log.clone()));
        }
        let engine = RuntimeEngine::new(settings);
        let session = EmbeddedSession::new(set.clone(), engine, log, MAX_MESSAGE_BYTES);
        Ok(Toolq {
            set,
            max_message_bytes: MAX_MESSAGE_BYTES,
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
        let header = SessionHeader::new(tools_path, &set.tools, set.jobs);
        let log = log.begin_session(&header, memory, Arc::clone(&set.mask), Clock::system())?;
        Ok(Some(log))
    }
}
