//! `toolq servers`: asks the servers in tools.yaml for their tools, and compares them with tools.lock.

mod changes;
mod lock;
mod report;
mod report_json;

use std::path::Path;
use std::sync::Arc;

use crate::args::{ServersArguments, ServersCommand, ServersFormat};
use crate::context::CommandContext;
use crate::output::stdout;
use crate::output::{CommandError, Exit};
use crate::session::survey_servers;
use toolq_core::text::suggest_name;
use toolq_core::types::{ServerConfig, ToolsConfig};

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
        Some(ServersCommand::Lock(arguments)) => lock::lock_servers(arguments, context),
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
    let text = match arguments.format {
        ServersFormat::Text => report::render_report(&replies, &lock, !names.is_empty(), color),
        ServersFormat::Json => report_json::render_json(&replies, &lock),
    };
    stdout::write_line(&text)?;
    let is_fine = replies.iter().all(|reply| match &reply.result {
        Err(_) => false,
        Ok((now, _)) => {
            let locked = lock.servers.get(&reply.server.name);
            locked.is_none_or(|lock| changes::find_changes(lock, now).is_empty())
        }
    });
    Ok(if is_fine {
        Exit::Ok
    } else {
        Exit::ProblemsFound
    })
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
