//! Programs that a tool names and that can't be started: that of its command, and those that describe and probe it.

use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::os::Environment;
use crate::tools_file::yaml::Node;
use crate::types::{Backing, CommandBacking, Problem, Span, Tool, Tools};

/// What keeps the programs of `tool` from being started, each at its place.
pub(crate) fn faults(
    tool: &Tool,
    tools: &Tools,
    tree: &Node,
    environment: &Environment,
) -> Vec<Problem> {
    let place = |pointer: &str| tree.place(&["tools", &tool.name], pointer);
    let missing = |command: &CommandBacking, span: Span, hint: &str| {
        let why = program_fault(command, tools, environment)?;
        let hint = cure(&command.program, &tools.dir).unwrap_or_else(|| hint.to_owned());
        let message = format!("`{}` {why}", command.program);
        Some(Problem::warning(span, message, "").with_hint(hint))
    };
    let mut found = Vec::new();
    if let Some(describe) = &tool.describe {
        let hint = "calls of this tool can't be checked, and don't run, until it is there";
        found.extend(missing(&describe.command, place("/describe/0"), hint));
    }
    if let Some(probe) = &tool.probe {
        let hint = "a call that was interrupted stays in doubt on resume until it is there";
        found.extend(missing(probe, place("/probe/0"), hint));
    }
    if let Some(Backing::Command(command)) = &tool.backing {
        let span = place("/command/argv/0").max(place("/command/0"));
        let hint = "calls of this tool will fail until it is there";
        found.extend(missing(command, span, hint));
        found.extend(cwd_fault(command, tools, place("/command/cwd")));
    }
    found
}

/// Why the program of a command can't be started, if so.
fn program_fault(
    command: &CommandBacking,
    tools: &Tools,
    environment: &Environment,
) -> Option<&'static str> {
    let program = Path::new(&command.program);
    let candidates: Vec<PathBuf> = if command.program.contains('/') {
        vec![tools.dir.join(program)]
    } else {
        let path = environment
            .raw("PATH")
            .unwrap_or(OsStr::new("/usr/bin:/bin"));
        std::env::split_paths(path)
            .map(|folder| folder.join(program))
            .collect()
    };
    let files = || candidates.iter().filter(|path| path.is_file());
    let is_executable = |path: &PathBuf| {
        path.metadata()
            .is_ok_and(|metadata| metadata.permissions().mode() & 0o111 != 0)
    };
    match (files().any(is_executable), files().next().is_some()) {
        (true, _) => None,
        (false, true) => Some("is not executable"),
        (false, false) => Some("is not there"),
    }
}

/// What makes a program be found that is there.
fn cure(program: &str, dir: &Path) -> Option<String> {
    let is_beside = !program.contains('/') && dir.join(program).is_file();
    is_beside.then(|| {
        format!(
            "write `./{program}`: without a slash it is looked for in PATH, not beside tools.yaml"
        )
    })
}

/// What is wrong with the folder that a command runs in; of the root it is said elsewhere.
fn cwd_fault(command: &CommandBacking, tools: &Tools, place: Span) -> Option<Problem> {
    if command.cwd == tools.root || command.cwd.is_dir() {
        return None;
    }
    let cwd = command.cwd.strip_prefix(&tools.root);
    let message = format!(
        "there is no folder `{}` in the root",
        cwd.unwrap_or(&command.cwd).display()
    );
    let hint = "`cwd` is seen from the root; calls of this tool will fail until it is there";
    Some(Problem::warning(place, message, "").with_hint(hint))
}
