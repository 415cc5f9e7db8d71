//! Loads tools.yaml together with the tools that the host announces.

use serde::Serialize;

use crate::context::{CommandContext, LoadedToolsFile};
use crate::output::CommandError;
use redact::Mask;
use toolq_core::tools_file::HostToolDeclarations;
use toolq_core::types::{Severity, ToolsConfig};

/// Why tools can't be loaded.
pub(super) struct LoadFailure {
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
