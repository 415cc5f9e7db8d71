//! What each tool and server needs and this machine lacks. Runs no program, and sends nothing but the beginning of connections.

mod programs;
mod report;

use std::collections::BTreeMap;
use std::net::{TcpStream, ToSocketAddrs as _};
use std::sync::mpsc;
use std::time::{Duration, Instant};
use std::{io, thread};

use url::Url;

use crate::commands::check::machine::programs::{
    ProgramRole, Surroundings, find_missing_places, find_missing_programs,
};
use crate::commands::check::machine::report::{MissingRequirement, NeedsReport, RequirementKind};
use toolq_core::os::Environment;
use toolq_core::types::{
    Backing, BodyTemplate, CommandBacking, ServerConfig, ServerTransport, Template, Tool,
    ToolsConfig,
};

pub(super) use report::{NeedsSurvey, find_machine_warnings, render_text, summarize};

/// Looks for everything. Only connects to addresses if `connects`.
pub(super) fn survey_needs(
    tools: &ToolsConfig,
    environment: &Environment,
    connects: bool,
) -> NeedsSurvey {
    let environment = environment.with_env_file(&tools.env_file);
    let of_tools = tools
        .tools
        .iter()
        .filter_map(|tool| RemoteParty::of_tool(tool));
    let of_servers = tools
        .servers
        .iter()
        .filter_map(|server| RemoteParty::of_server(server));
    let addresses = of_tools.chain(of_servers);
    let addresses = addresses.filter_map(|remote| remote.address(&environment));
    let surroundings = Surroundings {
        tools,
        environment: &environment,
        unreachable: connect_to_all(addresses.filter(|_| connects)),
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
    let report = |name: &str, missing| NeedsReport {
        name: name.to_owned(),
        missing: masked(missing),
    };
    NeedsSurvey {
        machine: masked(find_missing_machine_parts(&surroundings)),
        tools: (tools.tools.iter())
            .map(|tool| report(&tool.name, survey_tool(tool, &surroundings)))
            .collect(),
        servers: (tools.servers.iter())
            .map(|server| report(&server.name, survey_server(server, &surroundings)))
            .collect(),
    }
}

fn survey_tool(tool: &Tool, surroundings: &Surroundings<'_>) -> Vec<MissingRequirement> {
    let describe = tool.describe.as_ref().map(|describe| &describe.command);
    let command = match &tool.backing {
        Some(Backing::Command(command)) => Some(command),
        _ => None,
    };
    let programs = [
        (command, ProgramRole::Tool),
        (describe, ProgramRole::Describe),
        (tool.probe.as_ref(), ProgramRole::Probe),
    ];
    let mut missing = RemoteParty::of_tool(tool)
        .map(|remote| remote.survey(surroundings))
        .unwrap_or_default();
    for (program, role) in programs {
        let needed = program.map(|program| survey_command(program, role, surroundings));
        for requirement in needed.into_iter().flatten() {
            // The command's environment is also that of the other two.
            if !missing.iter().any(|known| requirement.is_same_as(known)) {
                missing.push(requirement);
            }
        }
    }
    missing
}

fn survey_server(
    server: &ServerConfig,
    surroundings: &Surroundings<'_>,
) -> Vec<MissingRequirement> {
    let remote = RemoteParty::of_server(server).map(|remote| remote.survey(surroundings));
    let program = |program| survey_command(program, ProgramRole::Server, surroundings);
    remote
        .or_else(|| server.program().map(program))
        .unwrap_or_default()
}

fn survey_command(
    command: &CommandBacking,
    role: ProgramRole,
    surroundings: &Surroundings<'_>,
) -> Vec<MissingRequirement> {
    let templates: Vec<_> = command.env.iter().map(|(_, template)| template).collect();
    let mut missing = find_missing_programs(command, role, surroundings);
    missing.extend(find_missing_variables(&templates, surroundings));
    missing.extend(find_unset_passed_variables(command, surroundings));
    missing.extend(find_missing_places(command, surroundings));
    needed_by(role.part(), missing)
}

/// Sets the key that asks for it.
fn needed_by(part: &'static str, mut missing: Vec<MissingRequirement>) -> Vec<MissingRequirement> {
    for missing in &mut missing {
        missing.part = part;
    }
    missing
}

// What is asked at an address: APIs, agents' models and servers.

/// An API, an agent's model or a server that is asked, and what is sent to it.
struct RemoteParty<'a> {
    /// The key that declares it.
    part: &'static str,
    /// Variables are filled into them.
    templates: Vec<&'a Template>,
    /// Where it has to listen.
    url: Option<&'a Template>,
}

impl<'a> RemoteParty<'a> {
    fn of_tool(tool: &'a Tool) -> Option<Self> {
        let (part, templates, url) = match tool.backing.as_ref()? {
            Backing::Http(http) => {
                let url = http.proxy.as_ref().unwrap_or(&http.url);
                ("/http", http.templates(), Some(url))
            }
            Backing::Agent(agent) => ("/agent", agent.templates(), Some(&agent.endpoint)),
            Backing::Mcp(mcp) => {
                let arguments = mcp.arguments.iter().flat_map(BodyTemplate::templates);
                ("/mcp", arguments.collect(), None)
            }
            Backing::Command(_) | Backing::Host | Backing::Builtin(_) => return None,
        };
        Some(Self {
            part,
            templates,
            url,
        })
    }

    fn of_server(server: &'a ServerConfig) -> Option<Self> {
        let ServerTransport::Endpoint(endpoint) = &server.transport else {
            return None;
        };
        Some(Self {
            part: "",
            templates: server.templates(),
            url: Some(&endpoint.url),
        })
    }

    /// Returns where it has to listen, up to the first value from an input, if all variables are set.
    fn address(&self, environment: &Environment) -> Option<Address> {
        let prefix = self.url?.before_values();
        let url = Url::parse(&prefix.resolve(&|name| environment.get(name)).ok()?).ok()?;
        let port = url.port_or_known_default()?;
        Some(format!("{}:{port}", url.host_str()?))
    }

    fn survey(&self, surroundings: &Surroundings<'_>) -> Vec<MissingRequirement> {
        let mut missing = find_missing_variables(&self.templates, surroundings);
        let address = self.address(surroundings.environment);
        missing.extend(address.and_then(|address| surroundings.find_failure(&address)));
        needed_by(self.part, missing)
    }
}

// Addresses that something has to listen at. A connection is opened and closed; nothing is sent.

/// How long all connections together may take. Looking up a name has no limit of its own.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// A host and its port, as in `example.com:443`.
type Address = String;

/// Connects to all addresses at the same time. Returns those that can't be reached, and why.
fn connect_to_all(addresses: impl Iterator<Item = Address>) -> BTreeMap<Address, String> {
    let unknown = format!("no answer within {} s", CONNECT_TIMEOUT.as_secs());
    let mut failures: BTreeMap<Address, String> = addresses
        .map(|address| (address, unknown.clone()))
        .collect();
    let (sender, replies) = mpsc::channel();
    for address in failures.keys().cloned() {
        let sender = sender.clone();
        let connect = move || {
            let result = connect(&address).map_err(|error| error.to_string());
            // After the deadline, the receiver is gone.
            let _ = sender.send((address, result));
        };
        // Without a thread, the address counts as silent.
        let _ = thread::Builder::new().spawn(connect);
    }
    drop(sender);
    let deadline = Instant::now() + CONNECT_TIMEOUT;
    let left = || deadline.saturating_duration_since(Instant::now());
    while let Ok((address, result)) = replies.recv_timeout(left()) {
        match result {
            Ok(()) => failures.remove(&address),
            Err(why) => failures.insert(address, why),
        };
    }
    failures
}

impl Surroundings<'_> {
    /// Returns why an address can't be reached, if that is known.
    fn find_failure(&self, address: &str) -> Option<MissingRequirement> {
        let why = self.unreachable.get(address)?;
        let message = format!("{address} can't be reached: {why}");
        let hint = "start what should listen there, or correct the address";
        let kind = RequirementKind::Address;
        Some(MissingRequirement::new(kind, address, message, hint))
    }
}

fn connect(address: &str) -> io::Result<()> {
    let mut last_error = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    for address in address.to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, CONNECT_TIMEOUT) {
            Ok(_) => return Ok(()),
            Err(error) => last_error = error,
        }
    }
    Err(last_error)
}

// What every call needs.

/// Returns what is missing for any call.
fn find_missing_machine_parts(surroundings: &Surroundings<'_>) -> Vec<MissingRequirement> {
    let mut missing = Vec::new();
    let root = &surroundings.tools.root;
    if !root.is_dir() {
        let root = root.display().to_string();
        let message = format!("the root {root} isn't a directory");
        let hint = "commands run there; create it, correct `root`, or start toolq elsewhere";
        let kind = RequirementKind::Directory;
        let root = MissingRequirement::new(kind, root, message, hint);
        missing.extend(needed_by("/root", vec![root]));
    }
    missing.extend(find_log_obstacle(surroundings.environment));
    missing
}

/// Returns why session logs can't be written, as far as directories and permissions show.
fn find_log_obstacle(environment: &Environment) -> Option<MissingRequirement> {
    let kind = RequirementKind::Directory;
    let is_named = environment
        .get_os("TOOLQ_LOG_FILE")
        .is_some_and(|file| !file.is_empty());
    if is_named {
        return None;
    }
    let hint = "set HOME or XDG_STATE_HOME, or name a log with --log or TOOLQ_LOG_FILE";
    let Ok(directory) = toolq_log::sessions_dir(environment) else {
        let message = "there is no directory for session logs: HOME isn't set";
        return Some(MissingRequirement::new(kind, "HOME", message, hint));
    };
    let existing = directory.ancestors().find(|ancestor| ancestor.exists())?;
    let access = rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK;
    if existing.is_dir() && rustix::fs::access(existing, access).is_ok() {
        return None;
    }
    let shown = directory.display().to_string();
    let message = format!("session logs can't be written to {shown}");
    Some(MissingRequirement::new(kind, shown, message, hint))
}

// Environment variables.

/// Returns the variables without a default that are unset or empty, each once.
fn find_missing_variables(
    templates: &[&Template],
    Surroundings { environment, .. }: &Surroundings<'_>,
) -> Vec<MissingRequirement> {
    let names = Template::missing_variables(templates, environment);
    let missing = names.into_iter().map(|name| {
        let message = format!("the variable {name} is unset or empty");
        let hint = format!("set it or, unless it's a secret, give it a default: ${{{name}:-…}}");
        MissingRequirement::new(RequirementKind::Variable, name, message, hint)
    });
    missing.collect()
}

/// Returns the variables of `pass_env` that aren't set. The program may do without them.
fn find_unset_passed_variables(
    command: &CommandBacking,
    Surroundings { environment, .. }: &Surroundings<'_>,
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
