//! Errors: problems with files and inputs. A call that fails isn't an error; its result says so.

use std::io;
use std::path::{Path, PathBuf};

use toolq_core::text::line_starts;
use toolq_core::tools_file::{HostToolProblem, SourceMap, SourcePosition};
use toolq_core::transcript::InputError;
use toolq_core::types::FileProblem;
use toolq_engine::UntrackableTool;
use toolq_log::LogError;

/// Why `tools.yaml`, a message or the session log can't be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No tools file was named.
    #[error("no tools file: call `tools_file` before `build`")]
    NoToolsFile,
    /// The tools file can't be read.
    #[error("{} can't be read", path.display())]
    UnreadableToolsFile {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The tools file has errors. All of them are listed, in file order.
    #[error("{}", list_problems(problems))]
    InvalidToolsFile {
        /// The file.
        path: PathBuf,
        /// What is wrong in it.
        problems: Vec<ToolsFileProblem>,
    },
    /// Functions can't be declared as tools: their keys have errors.
    #[error("{}", list_function_problems(.0))]
    InvalidFunctions(Vec<HostToolProblem>),
    /// The message isn't a model's message in any known dialect, or its stream broke off before the first call.
    #[error("{message}{}", hint_suffix(hint.as_deref()))]
    InvalidMessage {
        /// What is wrong, with line and column where they are known.
        message: String,
        /// What to do.
        hint: Option<String>,
    },
    /// Another process, or another [`Toolq`](crate::Toolq) in this one, is using the log.
    #[error("the session log {} is in use", .0.display())]
    LogInUse(PathBuf),
    /// There is no Tokio runtime.
    #[error("toolq needs a Tokio runtime with IO and time enabled")]
    NoRuntime,
    /// This program could be the [supervisor](crate::supervise) of its commands, but `/proc` is missing or shows another
    /// PID namespace. The tool isn't declared with `leftovers: allow`.
    #[error(
        "/proc is missing or shows another PID namespace, so the processes of {0} couldn't all be ended\nhint: mount /proc, or declare `leftovers: allow`"
    )]
    UntrackableProcesses(String),
    /// A tool that describes itself failed to do so.
    #[error("{tool} can't be declared: {reason}")]
    UndescribedTool {
        /// Its name.
        tool: String,
        /// Why.
        reason: String,
    },
    /// A server that tools.lock doesn't have couldn't be asked for its tools.
    #[error("the tools of the server {server} can't be declared: {reason}")]
    UnlistedServer {
        /// Its name.
        server: String,
        /// Why.
        reason: String,
    },
    /// The session log can't be opened or written.
    #[error("{message}{}", hint_suffix(hint.as_deref()))]
    Log {
        /// What is wrong.
        message: String,
        /// What to do.
        hint: Option<String>,
    },
}

/// Something wrong in a tools file.
#[derive(Debug, Clone, PartialEq, Eq, derive_more::Display)]
#[display(
    "{}:{line}:{column}: {message}{}",
    path.display(),
    hint_suffix(hint.as_deref())
)]
#[non_exhaustive]
pub struct ToolsFileProblem {
    /// The tools file, or the file that it includes.
    pub path: PathBuf,
    /// Counted from 1.
    pub line: usize,
    /// In characters, counted from 1.
    pub column: usize,
    /// What is wrong, in one sentence.
    pub message: String,
    /// What to do.
    pub hint: Option<String>,
}

impl ToolsFileProblem {
    /// Locates `problem` in the tools file at `path`, or a file that it includes.
    pub(crate) fn locate(problem: &FileProblem, sources: &SourceMap, path: &Path) -> Self {
        let SourcePosition {
            included,
            text,
            span,
        } = sources.locate(problem.span);
        let before = text.get(..span.start).unwrap_or(text);
        let starts = || line_starts(text, 0..before.len());
        let line_start = starts().last().unwrap_or_default();
        Self {
            path: match included {
                Some(included) => path.with_file_name("").join(included),
                None => path.to_owned(),
            },
            line: starts().count() + 1,
            column: before[line_start..].chars().count() + 1,
            message: problem.message.clone(),
            hint: problem.hint.clone(),
        }
    }
}

impl From<UntrackableTool> for Error {
    fn from(error: UntrackableTool) -> Self {
        Self::UntrackableProcesses(error.name)
    }
}

impl From<InputError> for Error {
    fn from(error: InputError) -> Self {
        Self::InvalidMessage {
            message: error.to_string(),
            hint: error.hint,
        }
    }
}

impl From<LogError> for Error {
    fn from(error: LogError) -> Self {
        match error {
            LogError::InUse(path) => Self::LogInUse(path),
            LogError::NoParentDir(_) => Self::Log {
                message: error.to_string(),
                hint: Some("create the directory".to_owned()),
            },
            _ => Self::Log {
                message: error.to_string(),
                hint: None,
            },
        }
    }
}

fn list_problems(problems: &[ToolsFileProblem]) -> String {
    let lines = problems.iter().map(ToolsFileProblem::to_string);
    lines.collect::<Vec<_>>().join("\n")
}

fn list_function_problems(problems: &[HostToolProblem]) -> String {
    let lines = problems.iter().map(|problem| {
        let place = problem.at.join("/");
        let hint = hint_suffix(problem.hint.as_deref());
        format!("tool {place}: {}{hint}", problem.message)
    });
    lines.collect::<Vec<_>>().join("\n")
}

fn hint_suffix(hint: Option<&str>) -> String {
    hint.map_or_else(String::new, |hint| format!("\nhint: {hint}"))
}
