//! Environment variables.

use std::collections::BTreeSet;

use crate::commands::doctor::missing::{MissingRequirement, RequirementKind};
use toolq_core::os::Environment;
use toolq_core::types::{
    Backing, BodyTemplate, CommandBacking, RequestBody, Template, TemplatePart,
};

/// Returns the templates of a request, an agent or a tool of a server that variables are filled into.
pub(super) fn backing_templates(backing: &Backing) -> Vec<&Template> {
    match backing {
        Backing::Http(http) => {
            let pairs = http.query.iter().chain(&http.headers);
            let body = match &http.body {
                RequestBody::Json(body) => body.templates(),
                RequestBody::Input | RequestBody::None => Vec::new(),
            };
            std::iter::once(&http.url)
                .chain(pairs.map(|(_, template)| template))
                .chain(&http.proxy)
                .chain(body)
                .collect()
        }
        Backing::Agent(agent) => {
            let optional = [
                &agent.api_key,
                &agent.fallback_model,
                &agent.system,
                &agent.prompt,
            ];
            let headers = agent.headers.iter().map(|(_, template)| template);
            [&agent.endpoint, &agent.model]
                .into_iter()
                .chain(optional.into_iter().flatten())
                .chain(headers)
                .collect()
        }
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
    let parts = templates.iter().flat_map(|template| &template.parts);
    let names: BTreeSet<&str> = parts
        .filter_map(|part| match part {
            TemplatePart::Env {
                name,
                default: None,
            } => Some(name.as_str()),
            _ => None,
        })
        .filter(|name| environment.get(name).is_none_or(|value| value.is_empty()))
        .collect();
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
