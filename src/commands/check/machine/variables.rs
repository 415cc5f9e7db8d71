//! Environment variables.

use crate::commands::check::machine::missing::{MissingRequirement, RequirementKind};
use toolq_core::os::Environment;
use toolq_core::types::{Backing, BodyTemplate, CommandBacking, Template};

/// Returns the templates of a request, an agent or a tool of a server that variables are filled into.
pub(super) fn backing_templates(backing: &Backing) -> Vec<&Template> {
    match backing {
        Backing::Http(http) => http.templates(),
        Backing::Agent(agent) => agent.templates(),
        Backing::Mcp(mcp) => mcp
            .arguments
            .iter()
            .flat_map(BodyTemplate::templates)
            .collect(),
        Backing::Command(_) | Backing::Host | Backing::Builtin(_) => Vec::new(),
    }
}

/// Returns the variables without a default that are unset or empty, each once.
pub(super) fn find_missing_variables(
    templates: &[&Template],
    environment: &Environment,
) -> Vec<MissingRequirement> {
    let names = Template::missing_variables(templates, environment);
    let missing = names.into_iter().map(|name| {
        let message = format!("the variable {name} is unset or empty");
        MissingRequirement::new(RequirementKind::Variable, name, message, "set it")
    });
    missing.collect()
}

/// Returns the variables of `pass_env` that aren't set. The program may do without them.
pub(super) fn find_unset_passed_variables(
    command: &CommandBacking,
    environment: &Environment,
) -> Vec<MissingRequirement> {
    let unset = command
        .pass_env
        .iter()
        .filter(|name| environment.get_os(name).is_none());
    let missing = unset.map(|name| {
        let message = format!("the variable {name} isn't set");
        let hint = "`pass_env` hands it over where it is set";
        MissingRequirement::new(RequirementKind::Variable, name, message, hint).into_optional()
    });
    missing.collect()
}
