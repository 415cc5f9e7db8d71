//! What each tool and server needs and this machine lacks. Runs no program, and sends nothing but the beginning of connections.

mod addresses;
mod every_call;
mod missing;
mod places;
mod programs;
mod report;
mod variables;

use std::path::Path;

use crate::commands::check::machine::addresses::{AddressBook, tool_address, url_address};
use crate::commands::check::machine::every_call::find_missing_machine_parts;
use crate::commands::check::machine::missing::{MissingRequirement, NeedsReport};
use crate::commands::check::machine::places::find_missing_places;
use crate::commands::check::machine::programs::{ProgramRole, find_missing_programs};
use crate::commands::check::machine::variables::{
    backing_templates, find_missing_variables, find_unset_passed_variables,
};
use toolq_core::os::Environment;
use toolq_core::types::{
    Backing, CommandBacking, ServerConfig, ServerTransport, Tool, ToolsConfig,
};
use toolq_engine::find_sandbox_gaps;

pub(super) use missing::NeedsSurvey;
pub(super) use report::{render_text, summarize};

/// What the needs depend on.
struct Surroundings<'a> {
    /// The directory of tools.yaml, absolute.
    dir: &'a Path,
    /// The working root, absolute.
    root: &'a Path,
    /// With the variables of `env_file`.
    environment: &'a Environment,
}

/// Looks for everything. Connects to addresses unless `offline`.
pub(super) fn survey_needs(
    tools: &ToolsConfig,
    environment: &Environment,
    offline: bool,
) -> NeedsSurvey {
    let environment = environment.with_env_file(&tools.env_file);
    let surroundings = Surroundings {
        dir: &tools.dir,
        root: &tools.root,
        environment: &environment,
    };
    let declared = || tools.tools.iter().map(|tool| &**tool);
    let addresses = declared()
        .filter_map(|tool| tool_address(tool.backing.as_ref()?, &environment))
        .chain(tools.servers.iter().filter_map(|server| {
            let ServerTransport::Endpoint(endpoint) = &server.transport else {
                return None;
            };
            url_address(&endpoint.url, &environment)
        }));
    let book = if offline {
        AddressBook::default()
    } else {
        AddressBook::connect_to_all(addresses)
    };
    let mask = tools.build_mask(&environment);
    let masked = |missing: Vec<MissingRequirement>| {
        let apply = |text: &str| mask.apply(text).into_owned();
        let missing = missing.into_iter().map(|missing| MissingRequirement {
            name: apply(&missing.name),
            message: apply(&missing.message),
            hint: apply(&missing.hint),
            ..missing
        });
        missing.collect()
    };
    NeedsSurvey {
        machine: masked(find_missing_machine_parts(&surroundings)),
        tools: declared()
            .map(|tool| NeedsReport {
                name: tool.name.clone(),
                missing: masked(survey_tool(tool, &surroundings, &book)),
            })
            .collect(),
        servers: tools
            .servers
            .iter()
            .map(|server| NeedsReport {
                name: server.name.clone(),
                missing: masked(survey_server(server, &surroundings, &book)),
            })
            .collect(),
    }
}

fn survey_tool(
    tool: &Tool,
    surroundings: &Surroundings<'_>,
    book: &AddressBook,
) -> Vec<MissingRequirement> {
    let mut missing = Vec::new();
    if let Some(describe) = &tool.describe {
        missing.extend(survey_command(
            &describe.command,
            ProgramRole::Describe,
            surroundings,
        ));
    }
    if let Some(probe) = &tool.probe {
        missing.extend(survey_command(probe, ProgramRole::Probe, surroundings));
    }
    match &tool.backing {
        Some(Backing::Command(command)) => {
            missing.extend(survey_command(command, ProgramRole::Tool, surroundings));
        }
        Some(backing) => {
            let templates = backing_templates(backing);
            missing.extend(find_missing_variables(&templates, surroundings.environment));
            let address = tool_address(backing, surroundings.environment);
            missing.extend(address.and_then(|address| book.find_failure(&address)));
        }
        None => {}
    }
    missing
}

fn survey_server(
    server: &ServerConfig,
    surroundings: &Surroundings<'_>,
    book: &AddressBook,
) -> Vec<MissingRequirement> {
    match &server.transport {
        ServerTransport::Program(program) => {
            survey_command(program, ProgramRole::Server, surroundings)
        }
        ServerTransport::Endpoint(endpoint) => {
            let mut missing = find_missing_variables(&server.templates(), surroundings.environment);
            let address = url_address(&endpoint.url, surroundings.environment);
            missing.extend(address.and_then(|address| book.find_failure(&address)));
            missing
        }
    }
}

fn survey_command(
    command: &CommandBacking,
    role: ProgramRole,
    surroundings: &Surroundings<'_>,
) -> Vec<MissingRequirement> {
    let templates: Vec<_> = command.env.iter().map(|(_, template)| template).collect();
    let mut missing = find_missing_programs(command, role, surroundings);
    missing.extend(find_missing_variables(&templates, surroundings.environment));
    missing.extend(find_unset_passed_variables(
        command,
        surroundings.environment,
    ));
    missing.extend(find_missing_places(
        command,
        surroundings,
        &find_sandbox_gaps,
    ));
    missing
}
