//! `toolq queue`: looks at a queue, and removes it.

use crate::args::{QueueArguments as Arguments, QueueCommand, QueuePurgeArguments};
use crate::commands::queue::session::{NatsSession, parse_queue_name};
use crate::context::CommandContext;
use crate::output::{CommandError, Exit, stdout};
use crate::queue::{QueueStatus, TurnQueue, read_status};

/// Runs a verb of `toolq queue`.
///
/// # Errors
/// The queue can't be used, or stdout can't be written.
pub(crate) fn manage_queue(
    arguments: &Arguments,
    context: &CommandContext,
) -> Result<Exit, CommandError> {
    match &arguments.command {
        QueueCommand::Status(status) => {
            let session = NatsSession::begin(&status.nats, context)?;
            let name = parse_queue_name(&status.queue)?;
            let status = session.runtime.block_on(async {
                let queue = TurnQueue::open(&session.client, &name).await?;
                read_status(&queue).await
            })?;
            stdout::write_line(&status_text(&status))?;
            session.end();
        }
        QueueCommand::Purge(purge) => purge_queue(purge, context)?,
    }
    Ok(Exit::Ok)
}

fn purge_queue(
    arguments: &QueuePurgeArguments,
    context: &CommandContext,
) -> Result<(), CommandError> {
    let session = NatsSession::begin(&arguments.nats, context)?;
    let name = parse_queue_name(&arguments.queue)?;
    let removed = session.runtime.block_on(async {
        let queue = TurnQueue::open(&session.client, &name).await?;
        let status = read_status(&queue).await?;
        let open = status.waiting + status.running as u64;
        if open > 0 && !arguments.force {
            let message = format!("turns of the queue {name} without an answer: {open}");
            return Err(CommandError::usage(message).with_hint("`--force` removes them, too"));
        }
        queue.remove().await?;
        Ok(status)
    })?;
    session.end();
    let note = format!("the queue {name} is gone, with {} bytes", removed.bytes);
    context.stderr.print_note(&note);
    Ok(())
}

fn status_text(status: &QueueStatus) -> String {
    let QueueStatus {
        queue,
        waiting,
        running,
        redelivered,
        messages,
        bytes,
        replicas,
    } = status;
    format!(
        "queue        {queue}\n\
         waiting      {waiting}\n\
         running      {running}\n\
         redelivered  {redelivered}\n\
         stream       {messages} messages, {bytes} bytes, {replicas} copies"
    )
}
