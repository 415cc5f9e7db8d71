//! Loads tools.yaml together with the tools that the host announces.

use std::sync::Arc;

use serde::Serialize;

use crate::context::{CommandContext, LoadedToolsFile};
use crate::output::CommandError;
use crate::session::{RunSession, ToolsInForce};
use redact::Mask;
use toolq_core::check::CallChecker;
use toolq_core::tools_file::HostToolDeclarations;
use toolq_core::types::{DescribeResult, Severity, Tool, ToolsChange, ToolsConfig};

/// Why tools can't be loaded.
pub(crate) struct LoadFailure {
    /// The message for people. If tools.yaml is wrong, its problems were printed.
    pub(super) error: CommandError,
    /// What is wrong, for the host. Without secrets.
    pub(super) problems: Vec<ToolsProblem>,
    /// Nothing is wrong with tools.yaml.
    pub(super) is_of_host: bool,
}

/// What is wrong with a tool, and where.
#[derive(Debug, Serialize)]
pub(super) struct ToolsProblem {
    /// The keys that lead to it, from the name of the tool on, if it came from the host.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) at: Option<Vec<String>>,
    /// The path of the file, otherwise, and the line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) file: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) line: Option<usize>,
    pub(super) message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) hint: Option<String>,
}

impl From<CommandError> for LoadFailure {
    fn from(error: CommandError) -> Self {
        Self {
            error,
            problems: Vec::new(),
            is_of_host: false,
        }
    }
}

/// Loads tools.yaml and adds the tools of the host. `consequence` ends the message if it can't be used.
///
/// # Errors
/// The file can't be read, or one of the two has errors.
pub(super) fn load_tools(
    context: &CommandContext,
    host_tools: Option<&HostToolDeclarations>,
    consequence: &str,
) -> Result<ToolsConfig, LoadFailure> {
    let file = context.read_tools_file_with_host(host_tools)?;
    if file.loaded.tools.is_some() {
        let (tools, file) = context.require_tools(file, consequence)?;
        context.warn_about_root(&tools, &file);
        return Ok(tools);
    }
    let mut problems = problems_of_file(&file);
    let is_of_host = problems.is_empty();
    problems.extend(problems_of_host(&file, host_tools));
    let error = if is_of_host {
        CommandError::usage("the tools of the host can't be used")
    } else {
        match context.require_tools(file, consequence) {
            Ok((tools, _)) => return Ok(tools),
            Err(error) => error,
        }
    };
    Err(LoadFailure {
        error,
        problems,
        is_of_host,
    })
}

fn problems_of_file(file: &LoadedToolsFile) -> Vec<ToolsProblem> {
    let sources = &file.loaded.sources;
    let errors = file.loaded.problems.iter().filter(|problem| {
        problem.severity == Severity::Error && !sources.is_from_host(problem.span)
    });
    let located = errors.map(|problem| ToolsProblem {
        at: None,
        file: Some(file.path_of(problem.span).display().to_string()),
        line: Some(sources.locate(problem.span).line()),
        message: file.mask.apply(&problem.message).into_owned(),
        hint: mask_hint(problem.hint.as_deref(), &file.mask),
    });
    located.collect()
}

fn problems_of_host(
    file: &LoadedToolsFile,
    host_tools: Option<&HostToolDeclarations>,
) -> Vec<ToolsProblem> {
    let errors = host_tools.map(|tools| tools.find_errors(&file.loaded));
    let located = errors.unwrap_or_default().into_iter().map(|problem| {
        let at = problem
            .at
            .iter()
            .map(|key| file.mask.apply(key).into_owned());
        ToolsProblem {
            at: Some(at.collect()),
            file: None,
            line: None,
            message: file.mask.apply(&problem.message).into_owned(),
            hint: mask_hint(problem.hint.as_deref(), &file.mask),
        }
    });
    located.collect()
}

fn mask_hint(hint: Option<&str>, mask: &Mask) -> Option<String> {
    hint.map(|hint| mask.apply(hint).into_owned())
}

impl LoadFailure {
    /// Returns one sentence that names the first problem.
    pub(super) fn summary(&self) -> String {
        let Some(first) = self.problems.first() else {
            return self.error.message.clone();
        };
        let place = match (&first.at, &first.file, first.line) {
            (Some(at), ..) if !at.is_empty() => format!("{}: ", at.join("/")),
            (_, Some(file), Some(line)) => format!("{file}, line {line}: "),
            _ => String::new(),
        };
        format!("{}: {place}{}", self.error.message, first.message)
    }
}

// The tools that the turns of a host are checked with, and how they change.

/// The error of a tool that came with a reload and whose `describe` program would have to run in the middle of a session.
const NOT_DESCRIBED: &str =
    "the tool came with a reload; it describes itself when toolq is started again";

/// The tools of tools.yaml and of the host.
pub(super) struct ToolsInUse<'a> {
    context: &'a CommandContext,
    host_tools: Option<HostToolDeclarations>,
    in_force: ToolsInForce<'a>,
    checker: CallChecker,
}

impl<'a> ToolsInUse<'a> {
    /// Begins with the tools of a session.
    pub(super) fn new(
        session: &RunSession<'a>,
        host_tools: Option<HostToolDeclarations>,
        has_fixed_jobs: bool,
    ) -> Self {
        Self {
            context: session.context,
            host_tools,
            in_force: ToolsInForce::new(session, has_fixed_jobs),
            checker: CallChecker::new(Arc::clone(&session.setup.tools)),
        }
    }

    pub(super) fn tools(&self) -> &Arc<ToolsConfig> {
        self.in_force.tools()
    }

    pub(super) fn checker(&self) -> &CallChecker {
        &self.checker
    }

    /// Reads tools.yaml again. What the host has announced stays. Returns what has changed.
    ///
    /// # Errors
    /// Why the tools stay as they were.
    pub(super) fn reload(&mut self) -> Result<ToolsChange, LoadFailure> {
        if self.context.tools_path.as_os_str() == "-" {
            let message = "the tools file came from stdin, so it can't be read again";
            return Err(CommandError::usage(message).into());
        }
        let mut tools = load_tools(self.context, self.host_tools.as_ref(), "")?;
        self.in_force.admit(&mut tools)?;
        // A `describe` program would have to run in between, while calls wait.
        for tool in tools.tools.iter().filter(|tool| tool.describe.is_some()) {
            if let Some(describe) = tool.describe.as_ref().filter(|_| tool.needs_describe()) {
                // Nothing else describes it.
                let _ = describe
                    .result
                    .set(DescribeResult::Err(NOT_DESCRIBED.to_owned()));
            }
        }
        let (old, new) = (callable(self.tools()), callable(&tools));
        let change = self.in_force.change(tools, &old, &new);
        self.in_force.replace(&change.tools);
        self.checker = CallChecker::new(Arc::clone(&change.tools));
        Ok(change)
    }
}

fn callable(tools: &ToolsConfig) -> Vec<Arc<Tool>> {
    let mut known = tools.known_tools();
    known.retain(|tool| !tool.awaits_list);
    known
}
