//! `toolq queue resolve`: records what became of a call in doubt, and has its turn answered again.

use crate::args::QueueResolveArguments as Arguments;
use crate::commands::log::resolve::load_mask;
use crate::commands::queue::session::{NatsSession, parse_queue_name};
use crate::context::CommandContext;
use crate::output::CommandError;
use crate::queue::{Finding, TurnQueue, find_turn_in_doubt, resolve_in_queue};
use toolq_log::Resolution;

/// # Errors
/// No call in doubt has the id, several do, or the queue can't be used.
pub(super) fn resolve_call_in_queue(
    arguments: &Arguments,
    context: &CommandContext,
) -> Result<(), CommandError> {
    let name = parse_queue_name(&arguments.queue)?;
    let mask = load_mask(context);
    let finding = Finding {
        resolution: arguments.finding.resolution(),
        note: arguments.finding.note.as_deref(),
        mask: &mask,
    };
    let id = &arguments.id;
    let session = NatsSession::begin(&arguments.nats, context)?;
    let turn = session.runtime.block_on(async {
        let queue = TurnQueue::open(&session.client, &name).await?;
        let turn = find_turn_in_doubt(&queue, id, arguments.turn.as_deref()).await?;
        resolve_in_queue(&queue, &turn, id, &finding, &context.stderr).await?;
        Ok::<_, CommandError>(turn)
    })?;
    session.end();
    let becomes = match finding.resolution {
        Resolution::Done { .. } => "has this result now",
        Resolution::NotDone => "will run",
    };
    let turn = turn.short();
    let note = format!("{id} {becomes}; {turn} is answered again, and `collect` prints that, too");
    context.stderr.print_note(&note);
    Ok(())
}
