//! `toolq queue work`: answers the turns of a queue.

use std::sync::Arc;

use crate::args::WorkArguments as Arguments;
use crate::commands::queue::session::{NatsSession, parse_queue_name};
use crate::context::CommandContext;
use crate::output::{CommandError, Exit};
use crate::queue::{StopSignal, TurnQueue, TurnSettings, Worker, WorkerSettings};
use crate::session::{build_runtime, set_up_calls};

/// Answers turns until a signal arrives or, with `--until-empty`, until no turn is left.
///
/// # Errors
/// tools.yaml is invalid, or the queue can't be used.
pub(super) fn work_on_queue(
    arguments: &Arguments,
    context: &CommandContext,
) -> Result<Exit, CommandError> {
    let queue_name = parse_queue_name(&arguments.queue)?;
    let tools = Arc::new(context.load_tools_to_run()?);
    let setup = set_up_calls(tools, arguments.jobs, context)?;
    let session = NatsSession::begin(&arguments.nats, context)?;
    let runtime = build_runtime(false)?;
    let exit = runtime.block_on(async {
        let stop = StopSignal::install()?;
        let replicas = arguments.replicas.get();
        let queue = TurnQueue::open_or_create(&session.client, &queue_name, replicas).await?;
        let turns = TurnSettings {
            context,
            setup,
            nats_runtime: session.runtime.handle().clone(),
            stop,
        };
        let settings = WorkerSettings {
            ack_wait: arguments.ack_wait,
            drain: arguments.drain,
            max_deliveries: arguments.max_deliveries.get(),
            until_empty: arguments.until_empty,
        };
        Worker::open(&queue, settings, turns).await?.work().await
    })?;
    runtime.shutdown_background();
    session.end();
    Ok(exit)
}
