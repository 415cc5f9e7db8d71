//! `toolq queue collect`: writes the answers of a queue, in the order in which the turns were submitted.

use crate::args::CollectArguments as Arguments;
use crate::commands::queue::session::{NatsSession, parse_queue_name};
use crate::context::CommandContext;
use crate::output::{CommandError, Exit, stdout};
use crate::queue::{CollectSettings, StopSignal, TurnQueue, collect_answers};

/// Writes answers until a signal, or until all turns are answered.
///
/// # Errors
/// The queue can't be used, or stdout can't be written.
pub(super) fn collect_results(
    arguments: &Arguments,
    context: &CommandContext,
) -> Result<Exit, CommandError> {
    stdout::check_open()?;
    let queue_name = parse_queue_name(&arguments.queue)?;
    let session = NatsSession::begin(&arguments.nats, context)?;
    let settings = CollectSettings {
        until_empty: arguments.until_empty,
        from_start: arguments.from_start,
    };
    let exit = session.runtime.block_on(async {
        let stop = StopSignal::install()?;
        let queue = TurnQueue::open(&session.client, &queue_name).await?;
        collect_answers(&queue, &session.client, settings, &stop).await
    })?;
    session.end();
    Ok(exit)
}
