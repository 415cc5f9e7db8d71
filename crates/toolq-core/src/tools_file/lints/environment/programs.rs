//! Warns about programs that can't be started: those of a tool's `command`, `describe` and `probe`.

use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::os::Environment;
use crate::tools_file::lints::sandboxes::unreadable_program_warning;
use crate::tools_file::yaml::YamlNode;
use crate::types::{Backing, CommandBacking, FileProblem, ServerConfig, Span, Tool, ToolsConfig};

/// Returns a warning for each program of `tool` that can't be started.
pub(crate) fn program_warnings(
    tool: &Tool,
    tools: &ToolsConfig,
    tree: &YamlNode,
    environment: &Environment,
) -> Vec<FileProblem> {
    let span_at = |pointer: &str| tree.span_at(&["tools", &tool.name], pointer);
    let program_warning = |command: &CommandBacking, span: Span, hint: &str| {
        let Some(why) = program_start_obstacle(command, tools, environment) else {
            let file = find_started_file(command, tools, environment)?;
            return unreadable_program_warning(command, &file, ["tools", &tool.name], tools, tree);
        };
        let hint =
            program_hint(started_program(command), &tools.dir).unwrap_or_else(|| hint.to_owned());
        let message = format!("`{}` {why}", started_program(command));
        Some(FileProblem::warning(span, message, "").with_hint(hint))
    };
    let mut found = Vec::new();
    if let Some(describe) = &tool.describe {
        let hint = "until this is fixed, calls of this tool can't be checked and don't run";
        found.extend(program_warning(
            &describe.command,
            span_at("/describe/0"),
            hint,
        ));
    }
    if let Some(probe) = &tool.probe {
        let hint = "until this is fixed, an interrupted call stays in doubt on resume";
        found.extend(program_warning(probe, span_at("/probe/0"), hint));
    }
    if let Some(Backing::Command(command)) = &tool.backing {
        let span = span_at("/command/argv/0").max(span_at("/command/0"));
        let hint = "until this is fixed, calls of this tool will fail";
        found.extend(program_warning(command, span, hint));
        found.extend(cwd_warning(command, tools, span_at("/command/cwd")));
    }
    found
}

/// Returns a warning for each server whose program can't be started.
pub(crate) fn server_warnings(
    tools: &ToolsConfig,
    tree: &YamlNode,
    environment: &Environment,
) -> Vec<FileProblem> {
    let warning = |server: &ServerConfig| {
        let command = server.program()?;
        let program = started_program(command);
        let Some(why) = program_start_obstacle(command, tools, environment) else {
            let file = find_started_file(command, tools, environment)?;
            let owner = ["servers", &server.name];
            return unreadable_program_warning(command, &file, owner, tools, tree);
        };
        let span_at = |pointer: &str| tree.span_at(&["servers", &server.name], pointer);
        let span = span_at("/command/argv/0").max(span_at("/command/0"));
        let hint = program_hint(program, &tools.dir)
            .unwrap_or_else(|| "until this is fixed, calls of its tools will fail".to_owned());
        Some(FileProblem::warning(span, format!("`{program}` {why}"), "").with_hint(hint))
    };
    let servers = tools.servers.iter();
    servers.filter_map(|server| warning(server)).collect()
}

/// Returns the program that toolq itself starts. What a wrapper runs may be somewhere else.
fn started_program(command: &CommandBacking) -> &str {
    let wrapper = command.wrapper.as_ref();
    let wrapper = wrapper.and_then(|wrapper| wrapper.argv.first());
    wrapper.unwrap_or(&command.program)
}

/// Returns why the program of a command can't be started, or `None` if it can.
fn program_start_obstacle(
    command: &CommandBacking,
    tools: &ToolsConfig,
    environment: &Environment,
) -> Option<&'static str> {
    let candidates = program_candidates(command, tools, environment);
    let mut files = candidates.iter().filter(|path| path.is_file()).peekable();
    let is_found = files.peek().is_some();
    match (files.any(|path| is_executable(path)), is_found) {
        (true, _) => None,
        (false, true) => Some("is not executable"),
        (false, false) => Some("was not found"),
    }
}

/// Returns the file of the program that toolq starts for a command, if it can be executed.
fn find_started_file(
    command: &CommandBacking,
    tools: &ToolsConfig,
    environment: &Environment,
) -> Option<PathBuf> {
    let mut candidates = program_candidates(command, tools, environment).into_iter();
    candidates.find(|path| path.is_file() && is_executable(path))
}

fn is_executable(path: &Path) -> bool {
    path.metadata()
        .is_ok_and(|metadata| metadata.permissions().mode() & 0o111 != 0)
}

/// Returns the files that a command's program may be, in the order in which they are looked up.
fn program_candidates(
    command: &CommandBacking,
    tools: &ToolsConfig,
    environment: &Environment,
) -> Vec<PathBuf> {
    let name = started_program(command);
    let program = Path::new(name);
    if name.contains('/') {
        return vec![tools.dir.join(program)];
    }
    let path = environment.get_own("PATH");
    let path = path.unwrap_or(OsStr::new("/usr/bin:/bin"));
    let directories = std::env::split_paths(path);
    directories
        .map(|directory| directory.join(program))
        .collect()
}

/// Returns a hint for a program next to tools.yaml that isn't found because its name has no slash.
fn program_hint(program: &str, dir: &Path) -> Option<String> {
    let lacks_slash = !program.contains('/') && dir.join(program).is_file();
    lacks_slash.then(|| {
        format!(
            "write `./{program}`: without a slash it is looked up in PATH, not next to tools.yaml"
        )
    })
}

/// Returns a warning if the working directory of a command doesn't exist. The root is checked elsewhere.
fn cwd_warning(command: &CommandBacking, tools: &ToolsConfig, span: Span) -> Option<FileProblem> {
    if command.cwd == tools.root || command.cwd.is_dir() {
        return None;
    }
    let cwd = command.cwd.strip_prefix(&tools.root);
    let message = format!(
        "there is no directory `{}` in the root",
        cwd.unwrap_or(&command.cwd).display()
    );
    let hint = "`cwd` is relative to the root; until this is fixed, calls of this tool will fail";
    Some(FileProblem::warning(span, message, "").with_hint(hint))
}
