//! `toolq servers lock`: writes what the servers announce to tools.lock.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use crate::args::ServersLockArguments;
use crate::commands::servers::changes::{find_changes, render_changes};
use crate::commands::servers::select_servers;
use crate::context::CommandContext;
use crate::output::stdout;
use crate::output::{CommandError, Exit};
use crate::session::{SurveyReply, survey_servers};
use toolq_core::text::{escape, format_count};
use toolq_core::tools_lock::ToolsLock;
use toolq_core::types::{Effect, ServerLock, ToolLock};

/// Locks the servers, and prints what differs from an earlier lock.
///
/// # Errors
/// tools.yaml or tools.lock can't be used, there is no such server, or an output can't be written.
pub(super) fn lock_servers(
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
        write_lock(&path, &lock)?;
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
    let changes = old.map(|old| find_changes(old, &now)).unwrap_or_default();
    if !changes.is_empty() {
        stdout::write_line(&render_changes(name, &changes).join("\n"))?;
        if !arguments.update {
            let warning =
                format!("{name} has changed since it was locked; --update accepts the changes");
            context.stderr.print_warning(&warning);
            return Ok(false);
        }
    }
    let mut new = now.to_lock(old, today());
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

fn today() -> String {
    let now = jiff::Timestamp::now().to_string();
    now.split('T').next().unwrap_or_default().to_owned()
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

/// Replaces the file as a whole.
fn write_lock(path: &Path, lock: &ToolsLock) -> Result<(), CommandError> {
    let partial = path.with_extension("lock.new");
    let written = fs::write(&partial, lock.render()).and_then(|()| fs::rename(&partial, path));
    written.map_err(|error| {
        CommandError::new(
            Exit::Output,
            format!("{} can't be written: {error}", path.display()),
        )
    })
}
