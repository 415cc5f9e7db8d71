//! `toolq servers`: asks the servers in tools.yaml for their tools, and compares them with tools.lock.

mod report;

use std::path::Path;
use std::sync::Arc;

use clap::{Args, Subcommand};
use serde_json::json;

use crate::args::ServersFormat;
use crate::commands::servers::report::{ServerReport, render_changes, render_report, report_tools};
use crate::context::CommandContext;
use crate::output::{CommandError, Exit, replace_file, stdout, unwritten_file};
use crate::session::{SurveyReply, survey_servers};
use toolq_core::text::{escape, format_count, suggest_name};
use toolq_core::tools_lock::ToolsLock;
use toolq_core::types::{Effect, ServerConfig, ServerLock, ToolLock, ToolsConfig};

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, after_help = EXAMPLES)]
pub struct ServersArguments {
    /// Servers to ask, of which the tools are listed, too [default: all]
    #[arg(value_name = "NAME")]
    pub names: Vec<String>,
    /// Output format; `json` always lists the tools
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub format: ServersFormat,
    #[command(subcommand)]
    pub command: Option<ServersCommand>,
}

const EXAMPLES: &str = "\
Examples:
  toolq servers                       show which servers announce what tools.lock says
  toolq servers files                 the same for one server, with its tools
  toolq servers lock                  ask servers that aren't locked for their tools
  toolq servers lock --update files   accept what has changed";

#[derive(Debug, Subcommand)]
pub(crate) enum ServersCommand {
    /// Write what the servers announce to tools.lock, so that their tools can be called; exit 1 if one can't be locked
    Lock(ServersLockArguments),
}

#[derive(Debug, Args)]
pub(crate) struct ServersLockArguments {
    /// Servers to lock [default: all]
    #[arg(value_name = "NAME")]
    pub names: Vec<String>,
    /// Also accept what has changed since a server was locked
    #[arg(long)]
    pub update: bool,
    /// Give each tool the effect that its server claims; otherwise, it is a `write` tool
    #[arg(long)]
    accept_hints: bool,
}

/// Shows the servers, or locks them.
///
/// # Errors
/// tools.yaml or tools.lock can't be used, there is no such server, or an output can't be written.
pub fn run_servers_command(
    arguments: &ServersArguments,
    context: &CommandContext,
) -> Result<Exit, CommandError> {
    match &arguments.command {
        None => show_servers(arguments, context),
        Some(ServersCommand::Lock(arguments)) => lock_servers(arguments, context),
    }
}

fn show_servers(
    arguments: &ServersArguments,
    context: &CommandContext,
) -> Result<Exit, CommandError> {
    let names = &arguments.names;
    let (tools, lock) = context.load_servers()?;
    let servers = select_servers(&tools, names, &context.tools_path)?;
    let replies = survey_servers(&servers, &tools, context)?;
    let color = context.stderr.is_stdout_colored();
    let reports: Vec<_> = replies
        .iter()
        .map(|reply| ServerReport::new(reply, lock.servers.get(&reply.server.name)))
        .collect();
    stdout::write_line(&match arguments.format {
        ServersFormat::Text => render_report(&reports, !names.is_empty(), color),
        ServersFormat::Json => json!({"servers": reports}).to_string(),
    })?;
    let is_fine = |report: &ServerReport<'_>| matches!(report.state, "locked" | "not_locked");
    Ok(Exit::problems_if(!reports.iter().all(is_fine)))
}

/// Returns the servers with these names, or all.
fn select_servers(
    tools: &ToolsConfig,
    names: &[String],
    tools_path: &Path,
) -> Result<Vec<Arc<ServerConfig>>, CommandError> {
    let file = tools_path.display();
    if tools.servers.is_empty() {
        let error = CommandError::usage(format!("{file} has no `servers`"));
        return Err(error.with_hint(
            "declare them there; `toolq init -c - --from mcp.json` prints those of a client",
        ));
    }
    if names.is_empty() {
        return Ok(tools.servers.clone());
    }
    let find = |name: &String| {
        let found = tools.servers.iter().find(|server| server.name == *name);
        found.cloned().ok_or_else(|| {
            let known = tools.servers.iter().map(|server| &*server.name);
            let error = CommandError::usage(format!("there is no server {name:?} in {file}"));
            error.with_hint(match suggest_name(name, known.clone()) {
                Some(near) => format!("did you mean {near:?}?"),
                None => format!("it has {}", known.collect::<Vec<_>>().join(", ")),
            })
        })
    };
    names.iter().map(find).collect()
}

// `toolq servers lock`: writes what the servers announce to tools.lock.

/// Locks the servers, and prints what differs from an earlier lock.
///
/// # Errors
/// tools.yaml or tools.lock can't be used, there is no such server, or an output can't be written.
fn lock_servers(
    arguments: &ServersLockArguments,
    context: &CommandContext,
) -> Result<Exit, CommandError> {
    let (tools, old) = context.load_servers()?;
    let servers = select_servers(&tools, &arguments.names, &context.tools_path)?;
    let replies = survey_servers(&servers, &tools, context)?;
    let mut lock = old.clone();
    let is_declared = |name: &String| tools.servers.iter().any(|server| server.name == *name);
    lock.servers.retain(|name, _| is_declared(name));
    let mut exit = Exit::Ok;
    for reply in &replies {
        if !lock_server(reply, &mut lock, arguments, context)? {
            exit = Exit::ProblemsFound;
        }
    }
    let path = ToolsLock::path_beside(&context.tools_path);
    if lock == old {
        // A lock without servers would only say that all of them are missing from it.
        let state = if path.exists() {
            "unchanged"
        } else {
            "not written"
        };
        let note = format!("{} is {state}", path.display());
        context.stderr.print_note(&note);
    } else {
        replace_file(&path, |file| file.write_all(lock.render().as_bytes()))
            .map_err(|error| unwritten_file(&path, &error))?;
        context
            .stderr
            .print_note(&format!("wrote {}", path.display()));
    }
    Ok(exit)
}

/// Locks a server. Returns `false` if it can't be queried, or if it has changed and the user hasn't accepted that.
fn lock_server(
    reply: &SurveyReply,
    lock: &mut ToolsLock,
    arguments: &ServersLockArguments,
    context: &CommandContext,
) -> Result<bool, CommandError> {
    let name = &reply.server.name;
    let now = match &reply.result {
        Ok((now, _)) => Arc::clone(now),
        Err(why) => {
            let warning = format!("{name} can't be locked: {}", escape(why));
            context.stderr.print_warning(&warning);
            return Ok(false);
        }
    };
    for problem in &now.problems {
        context
            .stderr
            .print_warning(&format!("{name}: {}", escape(problem)));
    }
    let old = lock.servers.get(name);
    let changes = render_changes(name, &report_tools(old, &now));
    if !changes.is_empty() {
        stdout::write_line(&changes.join("\n"))?;
        if !arguments.update {
            let warning =
                format!("{name} has changed since it was locked; --update accepts the changes");
            context.stderr.print_warning(&warning);
            return Ok(false);
        }
    }
    let date = jiff::Timestamp::now().strftime("%F").to_string();
    let mut new = now.to_lock(old, date);
    if arguments.accept_hints {
        let effects = accept_hints(&mut new, old);
        if !effects.is_empty() {
            let note = format!("{name}: {}", escape(&effects.join(", ")));
            context.stderr.print_note(&note);
        }
    }
    // The date says when the lock became what it is.
    if let Some(old) = old
        && old.tools == new.tools
    {
        new.date.clone_from(&old.date);
    }
    context.stderr.print_note(&describe_lock(name, &new));
    lock.servers.insert(name.clone(), new);
    Ok(true)
}

/// Gives tools the effects that their server claims, and says which have changed. What a person wrote into the lock stays:
/// an effect that is neither the initial `write` nor what the server claimed before.
fn accept_hints(lock: &mut ServerLock, old: Option<&ServerLock>) -> Vec<String> {
    let mut changes = Vec::new();
    for (name, tool) in &mut lock.tools {
        let claimed_before = old
            .and_then(|old| old.tools.get(name))
            .and_then(|tool| tool.hint);
        let is_decided = tool.effect != Effect::Write && Some(tool.effect) != claimed_before;
        let effect = tool.hint.unwrap_or(Effect::Write);
        if !is_decided && tool.effect != effect {
            let (from, to) = (tool.effect.name(), effect.name());
            changes.push(format!("{name} is `{to}` now, and was `{from}`"));
            tool.effect = effect;
        }
    }
    changes
}

/// Says how many tools there are, and what their server claims beyond what the lock says.
fn describe_lock(name: &str, lock: &ServerLock) -> String {
    let tools = format_count(lock.tools.len() as u64, "tool");
    let claims_less = |tool: &&ToolLock| tool.hint.is_some_and(|hint| hint < tool.effect);
    match lock.tools.values().filter(claims_less).count() {
        0 => format!("{name}: {tools}"),
        claimed => format!(
            "{name}: {tools}, of which the server calls {claimed} `read` or `idempotent`; --accept-hints believes it"
        ),
    }
}
