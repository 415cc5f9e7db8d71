//! Warns about what makes calls fail on this machine: tools without a backing, missing programs, unset variables,
//! sandboxes that the system can't apply. These aren't errors, because plans and replays work regardless.

pub(crate) mod sandboxes;
#[cfg(test)]
mod tests;

use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use redact::Mask;

use crate::os::Environment;
use crate::tools_file::lints::sandboxes::unreadable_program_warning;
use crate::tools_file::tables::agent_tools::agent_cycle_warnings;
use crate::tools_file::yaml::YamlNode;
use crate::types::{
    Backing, BodyTemplate, CommandBacking, FileProblem, McpBacking, Span, Template, Tool,
    ToolsConfig,
};

/// Maximum number of tools that one warning names.
const MAX_NAMED_TOOLS: usize = 4;

/// Returns warnings about `tools`. `tree` provides their positions.
pub fn find_warnings(
    tools: &ToolsConfig,
    tree: &YamlNode,
    environment: &Environment,
) -> Vec<FileProblem> {
    let mut found = Vec::new();
    if !tools.root.is_dir() {
        found.push(
            FileProblem::warning(
                tree.span_at(&["root"], ""),
                "the root isn't a directory",
                "",
            )
            .with_hint("commands run there, and paths must stay inside it"),
        );
    }
    found.extend(ineffective_secret_warnings(tree, environment));
    found.extend(missing_backing_warning(tools, tree));
    found.extend(agent_cycle_warnings(tools, tree));
    for tool in &tools.tools {
        found.extend(program_warnings(tool, tools, tree, environment));
    }
    found.extend(server_warnings(tools, tree, environment));
    found.extend(unset_variable_warnings(tools, tree, environment));
    found
}

/// Returns warnings about names under `secrets` that mask nothing because the variable is misspelled, unset, empty, or
/// so short that masking it would hide unrelated text.
fn ineffective_secret_warnings(tree: &YamlNode, environment: &Environment) -> Vec<FileProblem> {
    let mut found = Vec::new();
    for (name, span) in tree.texts_at(&["secrets"]) {
        let value = environment.get_os(name).unwrap_or_default();
        let (message, hint) = if value.is_empty() {
            let message = format!("the variable {name} is unset or empty, so nothing is masked");
            (
                message,
                "`secrets` lists names of environment variables; check the spelling",
            )
        } else if value.len() < Mask::MIN_SECRET_BYTES {
            let message = format!("the value of {name} is too short to be masked");
            (
                message,
                "values under 6 bytes are never masked, since that would hide unrelated text",
            )
        } else {
            continue;
        };
        found.push(FileProblem::warning(span, message, "").with_hint(hint));
    }
    found
}

/// Returns one warning for all tools without a backing. Right after `init --from`, that is every tool.
fn missing_backing_warning(tools: &ToolsConfig, tree: &YamlNode) -> Option<FileProblem> {
    let names: Vec<&str> = tools
        .tools
        .iter()
        .filter(|tool| tool.backing.is_none())
        .map(|tool| tool.name.as_str())
        .collect();
    let first = names.first()?;
    let shown = names[..names.len().min(MAX_NAMED_TOOLS)].join("`, `");
    let (more, have) = match (names.len(), names.len().saturating_sub(MAX_NAMED_TOOLS)) {
        (1, _) => (String::new(), "has"),
        (_, 0) => (String::new(), "have"),
        (_, more) => (format!(" and {more} more"), "have"),
    };
    let message = format!("`{shown}`{more} {have} no `command`, `http`, `agent` or `mcp`");
    let span = tree.key_span_at(&["tools", first], "");
    let hint = "add one of them; until then, calls can be planned, but running them is an error";
    Some(FileProblem::warning(span, message, "nothing runs it").with_hint(hint))
}

/// Returns one warning per unset or empty variable, at the first tool that needs it.
fn unset_variable_warnings(
    tools: &ToolsConfig,
    tree: &YamlNode,
    environment: &Environment,
) -> Vec<FileProblem> {
    let mut missing: Vec<(&str, Span, usize)> = Vec::new();
    for tool in &tools.tools {
        let (key, templates) = match &tool.backing {
            None | Some(Backing::Builtin(_) | Backing::Host) => continue,
            Some(Backing::Command(command)) => (
                "/command",
                command.env.iter().map(|(_, template)| template).collect(),
            ),
            Some(Backing::Http(http)) => ("/http", http.templates()),
            Some(Backing::Agent(agent)) => ("/agent", agent.templates()),
            Some(Backing::Mcp(mcp)) => ("/mcp", server_templates(mcp)),
        };
        for name in Template::missing_variables(&templates, environment) {
            match missing.iter_mut().find(|(known, ..)| *known == name) {
                Some((_, _, more)) => *more += 1,
                None => missing.push((name, tree.span_at(&["tools", &tool.name], key), 0)),
            }
        }
    }
    let warning = |(name, span, more): (&str, Span, usize)| {
        let also = match more {
            0 => String::new(),
            1 => " (1 more tool needs it)".to_owned(),
            more => format!(" ({more} more tools need it)"),
        };
        let message = format!("the variable {name} is unset or empty{also}");
        let mut backings = tools.tools.iter().map(|tool| tool.backing.as_ref());
        let hint = if backings.any(|backing| is_api_key_variable(name, backing)) {
            "set it; don't give a key a default, which would be visible in the file".to_owned()
        } else {
            format!("set it, or give a default: `${{{name}:-…}}`")
        };
        FileProblem::warning(span, message, "needs it").with_hint(hint)
    };
    missing.into_iter().map(warning).collect()
}

/// Whether the variable is part of an agent's API key.
fn is_api_key_variable(name: &str, backing: Option<&Backing>) -> bool {
    let Some(Backing::Agent(agent)) = backing else {
        return false;
    };
    agent
        .api_key
        .iter()
        .flat_map(Template::env_names)
        .any(|key_variable| key_variable == name)
}

/// Returns the templates of a tool's server and of its arguments.
fn server_templates(mcp: &McpBacking) -> Vec<&Template> {
    let mut templates = mcp.server.templates();
    templates.extend(mcp.arguments.iter().flat_map(BodyTemplate::templates));
    templates
}

// Warns about programs that can't be started: those of a tool's `command`, `describe` and `probe`.

/// Returns a warning for each program of `tool` that can't be started.
fn program_warnings(
    tool: &Tool,
    tools: &ToolsConfig,
    tree: &YamlNode,
    environment: &Environment,
) -> Vec<FileProblem> {
    let span_at = |pointer: &str| tree.span_at(&["tools", &tool.name], pointer);
    let owner = ["tools", &tool.name];
    let program_warning = |command: &CommandBacking, span: Span, hint: &str| {
        program_warning(command, (owner, span, hint), tools, tree, environment)
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
        let hint =
            "until this is fixed, an interrupted call stays in doubt when it is asked for again";
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
fn server_warnings(
    tools: &ToolsConfig,
    tree: &YamlNode,
    environment: &Environment,
) -> Vec<FileProblem> {
    tools
        .servers
        .iter()
        .filter_map(|server| {
            let owner = ["servers", &server.name];
            let span_at = |pointer: &str| tree.span_at(&owner, pointer);
            let span = span_at("/command/argv/0").max(span_at("/command/0"));
            let hint = "until this is fixed, calls of its tools will fail";
            program_warning(
                server.program()?,
                (owner, span, hint),
                tools,
                tree,
                environment,
            )
        })
        .collect()
}

/// Returns a warning if the program of a command can't be started. `owner` has the keys of the tool or the server.
fn program_warning(
    command: &CommandBacking,
    (owner, span, hint): ([&str; 2], Span, &str),
    tools: &ToolsConfig,
    tree: &YamlNode,
    environment: &Environment,
) -> Option<FileProblem> {
    let program = started_program(command);
    match find_program(program, tools, environment) {
        Ok(file) => unreadable_program_warning(command, &file, owner, tools, tree),
        Err(why) => {
            let hint = program_hint(program, &tools.dir).unwrap_or_else(|| hint.to_owned());
            Some(FileProblem::warning(span, format!("`{program}` {why}"), "").with_hint(hint))
        }
    }
}

/// Returns the program that toolq itself starts. What a wrapper runs may be somewhere else.
fn started_program(command: &CommandBacking) -> &str {
    let wrapper = command.wrapper.as_ref();
    wrapper
        .and_then(|wrapper| wrapper.argv.first())
        .unwrap_or(&command.program)
}

/// Returns the file of a program as it is looked up, or why it can't be started.
fn find_program(
    program: &str,
    tools: &ToolsConfig,
    environment: &Environment,
) -> Result<PathBuf, &'static str> {
    let candidates = if program.contains('/') {
        vec![tools.dir.join(program)]
    } else {
        let path = environment.get_own("PATH");
        std::env::split_paths(path.unwrap_or(OsStr::new("/usr/bin:/bin")))
            .map(|directory| directory.join(program))
            .collect()
    };
    let is_executable = |path: &PathBuf| {
        path.metadata()
            .is_ok_and(|metadata| metadata.permissions().mode() & 0o111 != 0)
    };
    let mut files = candidates
        .into_iter()
        .filter(|path| path.is_file())
        .peekable();
    if files.peek().is_none() {
        return Err("was not found");
    }
    files.find(is_executable).ok_or("is not executable")
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
