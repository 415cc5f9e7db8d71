//! Finds the environment variables whose values are secrets, and so are masked in all output.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::template::is_variable_name;
use crate::tools_file::keys::ToolsFile;
use crate::tools_file::resolve::command_defaults::CommandDefaults;
use crate::tools_file::resolve::diagnostics::Diagnostics;
use crate::tools_file::resolve::server::ServersByName;
use crate::types::{Backing, Template, Tool};

/// Returns the names under `secrets`, and those of the variables that are used for credentials.
pub(crate) fn resolve_secrets(
    file: &ToolsFile,
    defaults: &CommandDefaults,
    tools: &[Arc<Tool>],
    servers: &ServersByName,
    diagnostics: &mut Diagnostics<'_>,
) -> Vec<String> {
    let mut names = BTreeSet::new();
    for name in file.secrets.items() {
        if !is_variable_name(&name.value) {
            diagnostics.error(
                name.span,
                format!(
                    "`{}` isn't a valid name for an environment variable",
                    name.value
                ),
                "",
                "`secrets` lists the names of variables, never their values",
            );
        }
        names.insert(name.value.clone());
    }
    let backings = tools.iter().filter_map(|tool| tool.backing.as_ref());
    for template in backings.flat_map(confidential_templates) {
        names.extend(template.env_names().map(str::to_owned));
    }
    // Also for a `probe` whose tool has no command.
    for (_, template) in &defaults.env {
        names.extend(template.env_names().map(str::to_owned));
    }
    let server_secrets = servers.values().flat_map(|server| server.secret_names());
    names.extend(server_secrets.map(str::to_owned));
    names.into_iter().collect()
}

/// Returns the templates whose variables are secrets.
fn confidential_templates(backing: &Backing) -> Vec<&Template> {
    let templates = |pairs| -> &[(String, Template)] { pairs };
    let api_key = match backing {
        Backing::Agent(agent) => agent.api_key.as_ref(),
        Backing::Command(_)
        | Backing::Http(_)
        | Backing::Mcp(_)
        | Backing::Builtin(_)
        | Backing::Host => None,
    };
    let (one, other) = match backing {
        Backing::Command(command) => (templates(&command.env), templates(&[])),
        Backing::Http(http) => (templates(&http.headers), templates(&http.query)),
        Backing::Agent(agent) => (templates(&agent.headers), templates(&[])),
        // The variables of a server belong to the server, not to one of its tools.
        Backing::Mcp(_) | Backing::Builtin(_) | Backing::Host => return Vec::new(),
    };
    let pairs = one.iter().chain(other);
    api_key
        .into_iter()
        .chain(pairs.map(|(_, template)| template))
        .collect()
}
