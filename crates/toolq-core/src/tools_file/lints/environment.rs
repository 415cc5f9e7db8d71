//! Warns about anything that would make calls fail or isn't safe: tools without a backing, missing programs, unset
//! variables, a world-writable file. These aren't errors, because plans and replays work regardless.

mod programs;
#[cfg(test)]
mod tests;

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::os::Environment;
use crate::tools_file::lints::late_start;
use crate::tools_file::lints::secrets;
use crate::tools_file::lints::unpinned_packages;
use crate::tools_file::resolve::agent_cycle_warnings;
use crate::tools_file::source_map::SourceMap;
use crate::tools_file::yaml::YamlNode;
use crate::types::{Backing, BodyTemplate, FileProblem, McpBacking, Span, Template, ToolsConfig};

/// Maximum number of tools that one warning names.
const MAX_NAMED_TOOLS: usize = 4;

/// Returns warnings about `tools`, which were read from `file`. `tree` provides their positions.
pub fn find_warnings(
    tools: &ToolsConfig,
    (tree, sources): (&YamlNode, &SourceMap),
    file: &Path,
    environment: &Environment,
) -> Vec<FileProblem> {
    let mut found: Vec<FileProblem> = sources
        .files()
        .filter(|(included, _)| {
            is_world_writable(
                &included.map_or_else(|| file.to_owned(), |path| tools.dir.join(path)),
            )
        })
        .map(|(_, start)| {
            let message = "any user can change this file, and thus what toolq runs";
            FileProblem::warning(Span { start, len: 0 }, message, "")
                .with_hint("remove that permission: `chmod o-w`")
        })
        .collect();
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
    found.extend(readable_env_file_warning(tools, tree));
    found.extend(secrets::ineffective_secret_warnings(tree, environment));
    found.extend(secrets::unmasked_variable_warnings(tools, tree));
    found.extend(missing_backing_warning(tools, tree));
    found.extend(agent_cycle_warnings(tools, tree));
    found.extend(late_start::late_start_warnings(tools, tree));
    for tool in &tools.tools {
        found.extend(programs::program_warnings(tool, tools, tree, environment));
    }
    found.extend(programs::server_warnings(tools, tree, environment));
    found.extend(unpinned_packages::unpinned_package_warnings(tools, tree));
    found.extend(unset_variable_warnings(tools, tree, environment));
    found
}

/// Returns a warning if other users can read the secrets in `env_file`.
fn readable_env_file_warning(tools: &ToolsConfig, tree: &YamlNode) -> Option<FileProblem> {
    let mode = tools.env_file.path()?.metadata().ok()?.permissions().mode();
    (mode & 0o077 != 0).then(|| {
        let span = tree.span_at(&["env_file"], "");
        let message = format!(
            "other users can open the secrets in this file (mode {:o})",
            mode & 0o777
        );
        FileProblem::warning(span, message, "").with_hint("take that permission away: `chmod 600`")
    })
}

fn is_world_writable(file: &Path) -> bool {
    file.metadata()
        .is_ok_and(|metadata| metadata.permissions().mode() & 0o002 != 0)
}

/// Returns one warning for all tools without a backing. Right after `init --from`, that is every tool.
fn missing_backing_warning(tools: &ToolsConfig, tree: &YamlNode) -> Option<FileProblem> {
    let unbacked = tools.tools.iter().filter(|tool| tool.backing.is_none());
    let names: Vec<&str> = unbacked.map(|tool| tool.name.as_str()).collect();
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
    let mut names = agent.api_key.iter().flat_map(Template::env_names);
    names.any(|key_variable| key_variable == name)
}

/// Returns the templates of a tool's server and of its arguments.
fn server_templates(mcp: &McpBacking) -> Vec<&Template> {
    let mut templates = mcp.server.templates();
    templates.extend(mcp.arguments.iter().flat_map(BodyTemplate::templates));
    templates
}
