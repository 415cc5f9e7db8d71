//! Queues of turns on NATS JetStream: submitted by one process, answered by workers on any machine, and collected in order.
//!
//! A queue is one stream. A turn has subjects of its own there, named by its input and its position:
//!
//! ```text
//! toolq.QUEUE.turn.INPUT.POSITION      the turn, as it was submitted; later messages ask for another run
//! toolq.QUEUE.log.INPUT.POSITION       its session log, a message for each sync
//! toolq.QUEUE.answer.INPUT.POSITION    its answer; later messages are those of later runs
//! toolq.QUEUE.doubt.INPUT.POSITION     its calls in doubt
//! toolq.QUEUE.dead.INPUT.POSITION      why it isn't run anymore
//! toolq.QUEUE.order.INPUT              which turns of the input are answered next, in order
//! toolq.QUEUE.collected                how far the answers were collected
//! ```
//!
//! Bodies of more than 512 KiB, and the files beside a log, are in an object store with the name of the stream.
//!
//! Workers pull turns from a durable consumer. The log of a turn travels with it: the worker that takes the turn writes the
//! messages to a file, runs it like `run` with a log, and publishes each new record before the action that it announces.
//! Each message names the last one on the subject that its sender knows, so that a worker whose turn was taken over is
//! refused.

mod collector;
mod connection;
mod consumer;
mod large_bodies;
mod lease;
mod messages;
mod names;
mod publishing;
mod record_publisher;
mod resolver;
mod status;
mod submitter;
mod turn_answering;
mod turn_log;
mod turn_queue;
mod turn_session;
mod worker;

use std::fmt::Display;

use toolq_core::exit::{CommandError, Exit};

pub use collector::{CollectSettings, WriteLines};
pub use connection::{NatsSettings, Notices, QueueSession};
pub use status::QueueStatus;
pub use submitter::{Submission, SubmitSettings, SubmittedInput};
pub use turn_session::CallSettings;
pub use worker::WorkerSettings;

/// Creates the error of a queue that can't be used; `what` says what failed.
pub(crate) fn queue_error(what: &str, why: impl Display) -> CommandError {
    CommandError::new(Exit::Log, format!("{what}: {why}"))
}
