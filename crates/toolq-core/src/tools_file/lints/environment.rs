//! What a run would stumble over: tools that nothing runs yet, programs that aren't there, variables that aren't set, a
//! file that everybody may write. None of it stops anything, since plans and replays work without.

mod programs;
#[cfg(test)]
mod tests;

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::os::Environment;
use crate::tools_file::lints::secrets;
use crate::tools_file::resolve::circles;
use crate::tools_file::yaml::Node;
use crate::types::{
    AgentBacking, Backing, Body, BodyTemplate, HttpBacking, Part, Problem, Span, Template, Tools,
};

/// Tools that one warning names.
const NAMED: usize = 4;

/// Warnings about `tools`, which were read from `file`; `tree` tells where they stand.
pub fn warnings(
    tools: &Tools,
    tree: &Node,
    file: &Path,
    environment: &Environment,
) -> Vec<Problem> {
    let mut found = Vec::new();
    if is_writable_by_all(file) {
        found.push(
            Problem::warning(
                Span::default(),
                "everybody may change this file, and so what toolq runs",
                "",
            )
            .with_hint("take the right away: `chmod o-w`"),
        );
    }
    if !tools.root.is_dir() {
        found.push(
            Problem::warning(tree.place(&["root"], ""), "the root is no folder", "")
                .with_hint("commands run there and paths must stay inside it"),
        );
    }
    found.extend(secrets::named(tree, environment));
    found.extend(secrets::used(tools, tree));
    found.extend(without_backing(tools, tree));
    found.extend(circles(tools, tree));
    for tool in &tools.tools {
        found.extend(programs::faults(tool, tools, tree, environment));
    }
    found.extend(unset(tools, tree, environment));
    found
}

fn is_writable_by_all(file: &Path) -> bool {
    file.metadata()
        .is_ok_and(|metadata| metadata.permissions().mode() & 0o002 != 0)
}

/// One warning for all tools that nothing runs: right after `init --from` that is every one.
fn without_backing(tools: &Tools, tree: &Node) -> Option<Problem> {
    let unbacked = tools.tools.iter().filter(|tool| tool.backing.is_none());
    let names: Vec<&str> = unbacked.map(|tool| tool.name.as_str()).collect();
    let first = names.first()?;
    let shown = names[..names.len().min(NAMED)].join("`, `");
    let (more, have) = match (names.len(), names.len().saturating_sub(NAMED)) {
        (1, _) => (String::new(), "has"),
        (_, 0) => (String::new(), "have"),
        (_, more) => (format!(" and {more} more"), "have"),
    };
    let message = format!("`{shown}`{more} {have} no `command`, `http` or `agent`");
    let place = tree.key_place(&["tools", first], "");
    let hint = "say what does the work; until then calls are planned, and answered with an error";
    Some(Problem::warning(place, message, "nothing runs it").with_hint(hint))
}

/// Variables that tools need and that are not set, each once, at the first tool that needs it.
fn unset(tools: &Tools, tree: &Node, environment: &Environment) -> Vec<Problem> {
    let mut missing: Vec<(&str, Span, usize)> = Vec::new();
    for tool in &tools.tools {
        let (key, templates) = match &tool.backing {
            None | Some(Backing::Builtin(_)) => continue,
            Some(Backing::Command(command)) => (
                "/command",
                command.env.iter().map(|(_, template)| template).collect(),
            ),
            Some(Backing::Http(http)) => ("/http", request_templates(http)),
            Some(Backing::Agent(agent)) => ("/agent", agent_templates(agent)),
        };
        for name in missing_variables(&templates, environment) {
            match missing.iter_mut().find(|(known, ..)| *known == name) {
                Some((_, _, more)) => *more += 1,
                None => missing.push((name, tree.place(&["tools", &tool.name], key), 0)),
            }
        }
    }
    let warning = |(name, place, more): (&str, Span, usize)| {
        let also = match more {
            0 => String::new(),
            1 => " (1 more tool needs it)".to_owned(),
            more => format!(" ({more} more tools need it)"),
        };
        let message = format!("the variable {name} is not set or empty{also}");
        let mut backings = tools.tools.iter().map(|tool| tool.backing.as_ref());
        let hint = if backings.any(|backing| is_key(name, backing)) {
            "set it; a key has no default, for that would stand in the file".to_owned()
        } else {
            format!("set it, or give a default: `${{{name}:-…}}`")
        };
        Problem::warning(place, message, "needs it").with_hint(hint)
    };
    missing.into_iter().map(warning).collect()
}

/// Whether an agent's key is made of this variable.
fn is_key(name: &str, backing: Option<&Backing>) -> bool {
    let Some(Backing::Agent(agent)) = backing else {
        return false;
    };
    let mut names = agent.api_key.iter().flat_map(Template::env_names);
    names.any(|of_key| of_key == name)
}

fn agent_templates(agent: &AgentBacking) -> Vec<&Template> {
    let optional = [
        &agent.api_key,
        &agent.fallback_model,
        &agent.system,
        &agent.prompt,
    ];
    let needed = [&agent.endpoint, &agent.model];
    needed
        .into_iter()
        .chain(optional.into_iter().flatten())
        .collect()
}

fn request_templates(http: &HttpBacking) -> Vec<&Template> {
    let mut templates = vec![&http.url];
    templates.extend(http.query.iter().map(|(_, template)| template));
    templates.extend(http.headers.iter().map(|(_, template)| template));
    templates.extend(&http.proxy);
    if let Body::Json(body) = &http.body {
        body_templates(body, &mut templates);
    }
    templates
}

pub(crate) fn body_templates<'b>(body: &'b BodyTemplate, templates: &mut Vec<&'b Template>) {
    match body {
        BodyTemplate::Literal(_) => {}
        BodyTemplate::Template(template) => templates.push(template),
        BodyTemplate::Array(items) => items
            .iter()
            .for_each(|item| body_templates(item, templates)),
        BodyTemplate::Object(pairs) => pairs
            .iter()
            .for_each(|(_, value)| body_templates(value, templates)),
    }
}

/// Variables without a default that are not set or empty, each once.
fn missing_variables<'t>(templates: &[&'t Template], environment: &Environment) -> Vec<&'t str> {
    let mut missing: Vec<&str> = templates
        .iter()
        .flat_map(|template| &template.parts)
        .filter_map(|part| match part {
            Part::Env {
                name,
                default: None,
            } => Some(name.as_str()),
            _ => None,
        })
        .filter(|name| environment.get(name).is_none_or(|value| value.is_empty()))
        .collect();
    missing.sort_unstable();
    missing.dedup();
    missing
}
