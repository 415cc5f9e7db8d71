//! `toolq queue`, a file per verb: turns that workers on any machine answer.

#[cfg(feature = "nats")]
mod collect;
#[cfg(feature = "nats")]
mod manage;
#[cfg(feature = "nats")]
mod resolve;
#[cfg(feature = "nats")]
mod session;
#[cfg(feature = "nats")]
mod submit;
#[cfg(feature = "nats")]
mod work;

use crate::args::QueueArguments as Arguments;
#[cfg(feature = "nats")]
use crate::args::QueueCommand;
use crate::context::CommandContext;
use crate::output::{CommandError, Exit};

/// Runs a verb of `toolq queue`.
///
/// # Errors
/// The queue can't be used, or stdout can't be written.
#[cfg(feature = "nats")]
pub(crate) fn run_queue_command(
    arguments: &Arguments,
    context: &CommandContext,
) -> Result<Exit, CommandError> {
    match &arguments.command {
        QueueCommand::Submit(arguments) => submit::submit_turns(arguments, context)?,
        QueueCommand::Work(arguments) => return work::work_on_queue(arguments, context),
        QueueCommand::Collect(arguments) => return collect::collect_results(arguments, context),
        QueueCommand::Status(arguments) => manage::show_status(arguments, context)?,
        QueueCommand::Dead(arguments) => manage::list_dead(arguments, context)?,
        QueueCommand::Log(arguments) => manage::print_log(arguments, context)?,
        QueueCommand::Cancel(arguments) => manage::cancel(arguments, context)?,
        QueueCommand::Resolve(arguments) => resolve::resolve_call_in_queue(arguments, context)?,
        QueueCommand::Purge(arguments) => manage::purge_queue(arguments, context)?,
    }
    Ok(Exit::Ok)
}

/// # Errors
/// Always: this build has no queues.
#[cfg(not(feature = "nats"))]
pub(crate) fn run_queue_command(_: &Arguments, _: &CommandContext) -> Result<Exit, CommandError> {
    Err(
        CommandError::usage("this toolq was built without `nats`; nothing ran").with_hint(
            "packages of toolq have it; from source: `cargo install --locked --path . --features nats`",
        ),
    )
}
