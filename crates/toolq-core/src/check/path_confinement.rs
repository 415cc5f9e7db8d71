//! Decides whether the inputs named in `paths` stay inside the root, judged as the arguments and variables that they
//! become. A call is judged when it is checked, and again right before each attempt, because a call before it may have
//! made a symlink.
//!
//! This isn't a sandbox: the tool's program opens the path after that, and a process that replaces a directory with a
//! symlink in between gets past the check.

#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use crate::check::fill::path_texts::{
    PathText, command_path_texts, mcp_path_texts, value_path_texts,
};
use crate::check::own_files::find_own_file;
use crate::check::path_bounds::{PathBounds, PathRefusal};
use crate::check::rejection;
use crate::json::Input;
use crate::types::{
    AcceptedCall, Backing, CommandBacking, Effect, ProblemDetail, Rejection, Tool, ToolsConfig,
};

/// The message for every refused path; a cause may follow.
const REFUSAL: &str = "Path must be within working directory";

/// Where the paths of calls may lead.
#[derive(Debug, Clone, Copy)]
pub struct PathLimits<'a> {
    /// The directory that they must stay inside.
    pub root: &'a Path,
    /// Files and directories in it that only calls of `read` tools may be given.
    pub own_files: &'a [PathBuf],
}

impl ToolsConfig {
    /// Returns where the paths of calls may lead.
    pub fn path_limits(&self) -> PathLimits<'_> {
        PathLimits {
            root: &self.root,
            own_files: &self.own_files,
        }
    }
}

/// Judges the paths of a call that was accepted earlier once more.
///
/// # Errors
/// The rejection of the call, because a path leads outside of `root` or to one of toolq's own files now.
pub fn recheck_paths(accepted: &AcceptedCall, limits: PathLimits<'_>) -> Result<(), Rejection> {
    check_paths(&accepted.tool, &accepted.input, limits)
}

/// Judges the inputs named in `paths`. Relative paths start in the directory where the tool's program runs.
///
/// # Errors
/// The rejection of the call, because paths lead outside of `root`, their target can't be determined, or they lead a tool
/// with effects to one of toolq's own files.
pub(crate) fn check_paths(
    tool: &Tool,
    input: &Input,
    PathLimits { root, own_files }: PathLimits<'_>,
) -> Result<(), Rejection> {
    let own_files = if tool.effect == Effect::Read {
        &[]
    } else {
        own_files
    };
    let command = match &tool.backing {
        Some(Backing::Command(command)) => Some(command),
        _ => None,
    };
    let base = working_directory(tool, root);
    if base != root && leads_outside(base, root) {
        return Err(rejection::path_outside_root(vec![ProblemDetail::new(
            "",
            "the tool's working directory leads outside of `root`",
        )]));
    }
    if tool.paths.is_empty() {
        return Ok(());
    }
    let Some(bounds) = PathBounds::new(root, base) else {
        return Err(rejection::path_outside_root(vec![ProblemDetail::new(
            "",
            explain_unusable_root(root),
        )]));
    };
    let mut details: Vec<ProblemDetail> = Vec::new();
    let mut leads_outside_root = false;
    for path in path_texts(tool, command, input) {
        let PathText { pointer, text, .. } = path;
        let verdict = text.as_deref().map(|text| {
            if path.is_guess {
                bounds.check_guess(text)
            } else {
                bounds.check_path(text)
            }
        });
        leads_outside_root |= verdict != Some(Ok(()));
        let message = match verdict {
            None => format!("{REFUSAL} (it isn't a string)"),
            Some(Err(PathRefusal::Outside)) => REFUSAL.to_owned(),
            Some(Err(cause)) => format!("{REFUSAL} ({cause})"),
            Some(Ok(())) => match find_own_file(&text.unwrap_or_default(), base, own_files) {
                Some(file) => refuse_own_file(file),
                None => continue,
            },
        };
        if details.iter().all(|detail| detail.path != pointer) {
            details.push(ProblemDetail::new(pointer, message));
        }
    }
    if details.is_empty() {
        return Ok(());
    }
    Err(if leads_outside_root {
        rejection::path_outside_root(details)
    } else {
        rejection::own_file(details)
    })
}

/// Returns the directory where the tool's program runs, and where relative paths start.
pub(crate) fn working_directory<'a>(tool: &'a Tool, root: &'a Path) -> &'a Path {
    match &tool.backing {
        Some(Backing::Mcp(mcp)) => mcp.server.program().map_or(root, |program| &program.cwd),
        Some(Backing::Command(command)) => &command.cwd,
        _ => root,
    }
}

/// Says what is wrong with a root in which no path can be judged, whatever the input is.
fn explain_unusable_root(root: &Path) -> &'static str {
    match root.try_exists() {
        Ok(false) => "the working directory (the root) doesn't exist",
        _ => "the working directory (the root) can't be read",
    }
}

/// Says why a tool with effects can't have the path of this file.
fn refuse_own_file(file: &Path) -> String {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    format!(
        "Path must not lead to {name}, which belongs to toolq: only tools that read may open it"
    )
}

/// Whether a directory that exists isn't in `root`: a call may have replaced it with a symlink.
fn leads_outside(directory: &Path, root: &Path) -> bool {
    match (directory.canonicalize(), root.canonicalize()) {
        (Ok(directory), Ok(root)) => !directory.starts_with(root),
        _ => false,
    }
}

/// Returns every text that a program could open because of an input named in `paths`.
fn path_texts(tool: &Tool, command: Option<&CommandBacking>, input: &Input) -> Vec<PathText> {
    let mut texts = value_path_texts(tool, command, input);
    for command in command.into_iter().chain(&tool.probe) {
        texts.extend(command_path_texts(command, &tool.paths, input));
    }
    if let Some(Backing::Mcp(mcp)) = &tool.backing {
        texts.extend(mcp_path_texts(mcp, &tool.paths, input));
    }
    texts
}
