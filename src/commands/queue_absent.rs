//! What a toolq without the feature `nats` has instead of `toolq queue`.

use crate::args::queue::QueueArguments;
use crate::context::CommandContext;
use crate::output::{CommandError, Exit};

/// # Errors
/// Always: this build has no queues.
pub(crate) fn run_queue_command(
    _: &QueueArguments,
    _: &CommandContext,
) -> Result<Exit, CommandError> {
    Err(
        CommandError::usage("this toolq was built without `nats`; nothing ran").with_hint(
            "packages of toolq have it; from source: `cargo install --locked --path . --features nats`",
        ),
    )
}
