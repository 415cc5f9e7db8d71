//! What each tool and server needs and this machine lacks. Runs no program, and sends nothing but the beginning of connections.

mod programs;

use std::collections::BTreeMap;
use std::net::{TcpStream, ToSocketAddrs as _};
use std::path::Path;
use std::sync::mpsc;
use std::time::{Duration, Instant};
use std::{io, thread};

use url::Url;

use crate::commands::check::machine::programs::{
    MissingRequirement, NeedsReport, ProgramRole, RequirementKind, find_missing_places,
    find_missing_programs,
};
use toolq_core::os::Environment;
use toolq_core::text::{escape, format_count, paint};
use toolq_core::types::{
    Backing, BodyTemplate, CommandBacking, ServerConfig, ServerTransport, Template, Tool,
    ToolsConfig,
};

pub(super) use programs::NeedsSurvey;

/// What the needs depend on.
struct Surroundings<'a> {
    /// The directory of tools.yaml, absolute.
    dir: &'a Path,
    /// The working root, absolute.
    root: &'a Path,
    /// With the variables of `env_file`.
    environment: &'a Environment,
    /// Why addresses can't be reached. Connecting to the others succeeded, or wasn't tried.
    unreachable: BTreeMap<Address, String>,
}

/// Looks for everything. Connects to addresses unless `offline`.
pub(super) fn survey_needs(
    tools: &ToolsConfig,
    environment: &Environment,
    offline: bool,
) -> NeedsSurvey {
    let environment = environment.with_env_file(&tools.env_file);
    let declared = || tools.tools.iter().map(|tool| &**tool);
    let addresses = declared()
        .filter_map(|tool| tool_address(tool.backing.as_ref()?, &environment))
        .chain(tools.servers.iter().filter_map(|server| {
            let ServerTransport::Endpoint(endpoint) = &server.transport else {
                return None;
            };
            url_address(&endpoint.url, &environment)
        }));
    let surroundings = Surroundings {
        dir: &tools.dir,
        root: &tools.root,
        environment: &environment,
        unreachable: if offline {
            BTreeMap::new()
        } else {
            connect_to_all(addresses)
        },
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
        tools: declared()
            .map(|tool| report(&tool.name, survey_tool(tool, &surroundings)))
            .collect(),
        servers: tools
            .servers
            .iter()
            .map(|server| report(&server.name, survey_server(server, &surroundings)))
            .collect(),
    }
}

fn survey_tool(tool: &Tool, surroundings: &Surroundings<'_>) -> Vec<MissingRequirement> {
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
            missing.extend(address.and_then(|address| surroundings.find_failure(&address)));
        }
        None => {}
    }
    missing
}

fn survey_server(
    server: &ServerConfig,
    surroundings: &Surroundings<'_>,
) -> Vec<MissingRequirement> {
    match &server.transport {
        ServerTransport::Program(program) => {
            survey_command(program, ProgramRole::Server, surroundings)
        }
        ServerTransport::Endpoint(endpoint) => {
            let mut missing = find_missing_variables(&server.templates(), surroundings.environment);
            let address = url_address(&endpoint.url, surroundings.environment);
            missing.extend(address.and_then(|address| surroundings.find_failure(&address)));
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
    missing.extend(find_missing_places(command, surroundings));
    missing
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

/// Returns the address that a request or an agent needs, if no input decides it and all variables are set.
fn tool_address(backing: &Backing, environment: &Environment) -> Option<Address> {
    match backing {
        Backing::Http(http) => url_address(http.proxy.as_ref().unwrap_or(&http.url), environment),
        Backing::Agent(agent) => url_address(&agent.endpoint, environment),
        Backing::Command(_) | Backing::Mcp(_) | Backing::Host | Backing::Builtin(_) => None,
    }
}

/// Returns the address of a URL up to its first value from an input.
fn url_address(template: &Template, environment: &Environment) -> Option<Address> {
    let prefix = template.before_values();
    let url = Url::parse(&prefix.resolve(&|name| environment.get(name)).ok()?).ok()?;
    let port = url.port_or_known_default()?;
    Some(format!("{}:{port}", url.host_str()?))
}

// What every call needs.

/// Returns what is missing for any call.
fn find_missing_machine_parts(surroundings: &Surroundings<'_>) -> Vec<MissingRequirement> {
    let mut missing = Vec::new();
    if !surroundings.root.is_dir() {
        let root = surroundings.root.display().to_string();
        let message = format!("the root {root} isn't a directory");
        let hint = "commands run there; create it, correct `root`, or start toolq elsewhere";
        let kind = RequirementKind::Directory;
        missing.push(MissingRequirement::new(kind, root, message, hint));
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

/// Returns the templates of a request, an agent or a tool of a server that variables are filled into.
fn backing_templates(backing: &Backing) -> Vec<&Template> {
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
fn find_missing_variables(
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
fn find_unset_passed_variables(
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

// The report for people.

/// SGR codes of a line's first word.
const RED: &str = "31";
const GREEN: &str = "32";
const YELLOW: &str = "33";
/// The state of what lacks nothing.
const READY: &str = "ready";

/// Renders a line per tool and server, with what it lacks below it, then the notes unless `quiet`.
pub(in crate::commands::check) fn render_text(
    survey: &NeedsSurvey,
    color: bool,
    quiet: bool,
) -> String {
    let mut lines = Vec::new();
    if !survey.machine.is_empty() {
        lines.extend(render_needs("this machine", &survey.machine, READY, color));
    }
    let ready = if is_ready(&survey.machine) {
        READY
    } else {
        "ready once this machine is"
    };
    let render = |subject: &str, report: &NeedsReport| {
        let name = format!("{subject} {}", escape(&report.name));
        render_needs(&name, &report.missing, ready, color)
    };
    lines.extend(survey.tools.iter().flat_map(|tool| render("tool", tool)));
    let servers = survey.servers.iter();
    lines.extend(servers.flat_map(|server| render("server", server)));
    if lines.is_empty() {
        lines.push("no tools".to_owned());
    }
    if !quiet {
        lines.extend(render_notes(survey, color));
    }
    lines.join("\n")
}

fn is_ready(missing: &[MissingRequirement]) -> bool {
    missing.iter().all(|missing| missing.optional)
}

/// `ready` is the state of what lacks nothing.
fn render_needs(
    name: &str,
    missing: &[MissingRequirement],
    ready: &str,
    color: bool,
) -> Vec<String> {
    let painted = |code: &str, text: &str| paint(text, code, color);
    let state = if is_ready(missing) {
        painted(if ready == READY { GREEN } else { YELLOW }, ready)
    } else {
        painted(RED, "not ready")
    };
    let mut lines = vec![format!("{name}: {state}")];
    for missing in missing.iter().filter(|missing| !missing.optional) {
        let mark = painted(RED, "missing");
        lines.push(format!("  {mark}: {}", escape(&missing.message)));
        lines.push(format!("    {}", escape(&missing.hint)));
    }
    lines
}

/// Renders what calls run without, each thing once with all tools and servers that it is about. Paths of the same ones share a
/// note.
fn render_notes(survey: &NeedsSurvey, color: bool) -> Vec<String> {
    let mut found: Vec<(&MissingRequirement, Vec<&str>)> = Vec::new();
    for report in survey.tools.iter().chain(&survey.servers) {
        for missing in report.missing.iter().filter(|missing| missing.optional) {
            match found.iter_mut().find(|(known, _)| *known == missing) {
                Some((_, owners)) => owners.push(&report.name),
                None => found.push((missing, vec![&report.name])),
            }
        }
    }
    let shares = |one: &(&MissingRequirement, Vec<&str>),
                  other: &(&MissingRequirement, Vec<&str>)| {
        let is_path = one.0.kind == RequirementKind::Path && one.0.hint == other.0.hint;
        is_path && one.1 == other.1
    };
    let notes = found.chunk_by(shares).flat_map(|notes| {
        let (first, owners) = &notes[0];
        let more = notes[1..]
            .iter()
            .map(|(other, _)| format!(", {}", other.name));
        let message = format!("{}{}", first.message, more.collect::<String>());
        let owners = owners.join(", ");
        [
            format!(
                "{}: {} ({})",
                paint("note", YELLOW, color),
                escape(&message),
                escape(&owners)
            ),
            format!("  {}", escape(&first.hint)),
        ]
    });
    notes.collect()
}

/// Says how much is missing.
pub(in crate::commands::check) fn summarize(survey: &NeedsSurvey) -> String {
    match survey.missing().filter(|missing| !missing.optional).count() {
        0 => "nothing is missing".to_owned(),
        1 => "1 thing is missing".to_owned(),
        missing => format!("{} are missing", format_count(missing as u64, "thing")),
    }
}
