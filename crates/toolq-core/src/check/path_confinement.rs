//! Decides whether the inputs named in `paths` stay inside the root, judged as the arguments and variables that they
//! become. A call is judged when it is checked, and again right before each attempt, because a call before it may have
//! made a symlink.
//!
//! This isn't a sandbox: the tool's program opens the path after that, and a process that replaces a directory with a
//! symlink in between gets past the check.

#[cfg(test)]
mod tests;

use std::path::Path;

use crate::check::fill::path_texts::{
    PathText, command_path_texts, mcp_path_texts, value_path_texts,
};
use crate::check::path_bounds::PathBounds;
use crate::check::rejection;
use crate::json::Input;
use crate::types::{AcceptedCall, Backing, CommandBacking, ProblemDetail, Rejection, Tool};

/// The message for every refused path; a cause may follow.
const REFUSAL: &str = "Path must be within working directory";

/// Judges the paths of a call that was accepted earlier once more.
///
/// # Errors
/// The rejection of the call, because a path leads outside of `root` now.
pub fn recheck_paths(accepted: &AcceptedCall, root: &Path) -> Result<(), Rejection> {
    let details = find_outside_paths(&accepted.tool, &accepted.input, root);
    if details.is_empty() {
        return Ok(());
    }
    Err(rejection::path_outside_root(details))
}

/// Finds the inputs named in `paths` that lead outside `root`, or whose target can't be determined. Relative paths
/// start in the directory where the tool's program runs.
pub(crate) fn find_outside_paths(tool: &Tool, input: &Input, root: &Path) -> Vec<ProblemDetail> {
    let command = match &tool.backing {
        Some(Backing::Command(command)) => Some(command),
        _ => None,
    };
    let base = match &tool.backing {
        Some(Backing::Mcp(mcp)) => mcp.server.program().map_or(root, |program| &program.cwd),
        _ => command.map_or(root, |command| &command.cwd),
    };
    if base != root && leads_outside(base, root) {
        return vec![ProblemDetail::new(
            "",
            "the tool's working directory leads outside of `root`",
        )];
    }
    if tool.paths.is_empty() {
        return Vec::new();
    }
    let Some(bounds) = PathBounds::new(root, base) else {
        return vec![ProblemDetail::new(
            "",
            format!("{REFUSAL} (which can't be read)"),
        )];
    };
    let mut details: Vec<ProblemDetail> = Vec::new();
    for path in path_texts(tool, command, input) {
        let PathText { pointer, text, .. } = path;
        let verdict = match text {
            Some(text) if path.is_guess => bounds.check_guess(&text),
            Some(text) => bounds.check_path(&text),
            None => Err("it isn't a string"),
        };
        let Err(cause) = verdict else { continue };
        let message = match cause {
            "" => REFUSAL.to_owned(),
            cause => format!("{REFUSAL} ({cause})"),
        };
        if details.iter().all(|detail| detail.path != pointer) {
            details.push(ProblemDetail::new(pointer, message));
        }
    }
    details
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
