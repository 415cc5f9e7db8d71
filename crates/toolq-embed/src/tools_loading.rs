//! Loads a tools file and the functions beside it.

use std::fs;
use std::io;
use std::path::Path;
use std::sync::Arc;

use toolq_core::tools_file::{self, HostToolDeclarations, HostToolProblem, ParsedToolsFile};
use toolq_core::tools_lock::{LockUse, ToolsLock};
use toolq_core::types::{Backing, CommandLimits, FileProblem, Severity, Tool, ToolsConfig};

use crate::error::{Error, ToolsFileProblem};
use crate::toolq::can_supervise;

/// Replaces the path of a tools file if all tools are functions. [`EMPTY_TOOLS_FILE`] replaces its text.
pub(super) const NO_TOOLS_FILE: &str = "functions";
const EMPTY_TOOLS_FILE: &str = "version: 1\n";

/// Loads a tools file and the functions beside it, and the warnings as text.
pub(super) fn load_tools(
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
pub(super) fn unsupervised_limits(tools: &ToolsConfig) -> Option<String> {
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
