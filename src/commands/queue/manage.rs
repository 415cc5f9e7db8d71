//! The verbs of `toolq queue` that look at a queue or take from it.

use std::fmt::Write as _;

use crate::args::{
    LogFormat, QueueNameArguments, QueuePurgeArguments, QueueStatusArguments, QueueTurnArguments,
};
use crate::commands::queue::session::{NatsSession, parse_queue_name};
use crate::context::CommandContext;
use crate::output::{CommandError, stdout};
use crate::queue::{
    QueueStatus, SyncMode, TurnQueue, cancel_turn, list_dead_turns, queue_error, read_log,
    read_status,
};
use toolq_core::json::expect_json;

/// How many calls in doubt the status names.
const MAX_NAMED_CALLS: usize = 10;

pub(super) fn show_status(
    arguments: &QueueStatusArguments,
    context: &CommandContext,
) -> Result<(), CommandError> {
    let name = parse_queue_name(&arguments.queue)?;
    let session = NatsSession::begin(&arguments.nats, context)?;
    let status = session.runtime.block_on(async {
        let queue = TurnQueue::open(&session.client, &name).await?;
        read_status(&queue, &session.client).await
    })?;
    session.end();
    let text = match arguments.format {
        LogFormat::Text => status_text(&status),
        LogFormat::Json => expect_json(serde_json::to_string(&status)),
    };
    stdout::write_line(&text)?;
    Ok(())
}

/// Prints one line for each turn that isn't run anymore.
pub(super) fn list_dead(
    arguments: &QueueNameArguments,
    context: &CommandContext,
) -> Result<(), CommandError> {
    let name = parse_queue_name(&arguments.queue)?;
    let session = NatsSession::begin(&arguments.nats, context)?;
    let dead = session.runtime.block_on(async {
        let queue = TurnQueue::open(&session.client, &name).await?;
        let dead = list_dead_turns(&queue).await;
        dead.map_err(|why| queue_error(&format!("the queue {name} can't be read"), why))
    })?;
    session.end();
    for (turn, dead) in dead {
        let input = dead.input.as_deref().unwrap_or("-");
        let line = format!(
            "{}  {} of {input}: {}",
            turn.short(),
            turn.number,
            dead.reason
        );
        stdout::write_line(&line)?;
    }
    Ok(())
}

pub(super) fn print_log(
    arguments: &QueueTurnArguments,
    context: &CommandContext,
) -> Result<(), CommandError> {
    let name = parse_queue_name(&arguments.queue)?;
    let session = NatsSession::begin(&arguments.nats, context)?;
    let lines = session.runtime.block_on(async {
        let queue = TurnQueue::open(&session.client, &name).await?;
        read_log(&queue, &arguments.turn).await
    })?;
    session.end();
    let lines = lines.ok_or_else(|| {
        CommandError::usage(format!("no worker has begun a turn {}", arguments.turn))
            .with_hint("`toolq queue status` and `toolq queue dead` name turns")
    })?;
    stdout::write_lines(&lines)?;
    Ok(())
}

pub(super) fn cancel(
    arguments: &QueueTurnArguments,
    context: &CommandContext,
) -> Result<(), CommandError> {
    let name = parse_queue_name(&arguments.queue)?;
    let session = NatsSession::begin(&arguments.nats, context)?;
    let turn = session.runtime.block_on(async {
        let queue = TurnQueue::open(&session.client, &name).await?;
        cancel_turn(&queue, &arguments.turn).await
    })?;
    session.end();
    let note = format!("{} is canceled; its answer says so", turn.short());
    context.stderr.print_note(&note);
    Ok(())
}

pub(super) fn purge_queue(
    arguments: &QueuePurgeArguments,
    context: &CommandContext,
) -> Result<(), CommandError> {
    let name = parse_queue_name(&arguments.queue)?;
    let session = NatsSession::begin(&arguments.nats, context)?;
    let removed = session.runtime.block_on(async {
        let queue = TurnQueue::open(&session.client, &name).await?;
        let status = read_status(&queue, &session.client).await?;
        let open = status.waiting + status.running as u64;
        if open > 0 && !arguments.force {
            let message = format!("turns of the queue {name} without an answer: {open}");
            return Err(CommandError::usage(message).with_hint("`--force` removes them, too"));
        }
        queue.remove().await?;
        Ok(status)
    })?;
    session.end();
    let bytes = removed.bytes + removed.object_bytes;
    let note = format!("the queue {name} is gone, with {bytes} bytes");
    context.stderr.print_note(&note);
    Ok(())
}

fn status_text(status: &QueueStatus) -> String {
    let mut text = String::new();
    let mut line = |name: &str, value: String| {
        let _ = writeln!(text, "{name:<13}{value}");
    };
    line("queue", status.queue.clone());
    line("waiting", status.waiting.to_string());
    line("running", status.running.to_string());
    line("redelivered", status.redelivered.to_string());
    let rate = status.rate();
    line(
        "workers",
        format!("{}, {rate:.1} turns/s", status.workers.len()),
    );
    for worker in &status.workers {
        let turn = worker.turn.as_deref().unwrap_or("idle");
        let answered = worker.answered;
        let worker = format!(
            "{} {}: {turn}, {answered} answered",
            worker.host, worker.pid
        );
        line("", worker);
    }
    line("in doubt", status.in_doubt.len().to_string());
    for in_doubt in status.in_doubt.iter().take(MAX_NAMED_CALLS) {
        let call = &in_doubt.call;
        line(
            "",
            format!("{} ({}) of {}", call.id, call.tool, in_doubt.turn),
        );
    }
    line("dead", status.dead.to_string());
    let QueueStatus {
        messages,
        bytes,
        replicas,
        ..
    } = status;
    let copies = if *replicas == 1 { "copy" } else { "copies" };
    line(
        "stream",
        format!("{messages} messages, {bytes} bytes, {replicas} {copies}"),
    );
    if status.object_bytes > 0 {
        line("objects", format!("{} bytes", status.object_bytes));
    }
    let sync = match status.sync {
        SyncMode::Always => "written before it is confirmed (`sync_interval: always`)",
        SyncMode::Lazy => "written some time after it is confirmed: a loss of power can take it",
        SyncMode::Unknown => "unknown: the server tells only its system account",
    };
    line("disk", sync.to_owned());
    text.trim_end().to_owned()
}
