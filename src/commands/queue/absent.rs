//! What a toolq without the feature `nats` says.

use crate::args::{CollectArguments, QueueArguments, SubmitArguments, WorkArguments};
use crate::context::CommandContext;
use crate::output::{CommandError, Exit};

/// # Errors
/// Always.
pub(crate) fn submit_turns(_: &SubmitArguments, _: &CommandContext) -> Result<Exit, CommandError> {
    Err(absent_error())
}

/// # Errors
/// Always.
pub(crate) fn work_on_queue(_: &WorkArguments, _: &CommandContext) -> Result<Exit, CommandError> {
    Err(absent_error())
}

/// # Errors
/// Always.
pub(crate) fn collect_results(
    _: &CollectArguments,
    _: &CommandContext,
) -> Result<Exit, CommandError> {
    Err(absent_error())
}

/// # Errors
/// Always.
pub(crate) fn manage_queue(_: &QueueArguments, _: &CommandContext) -> Result<Exit, CommandError> {
    Err(absent_error())
}

fn absent_error() -> CommandError {
    CommandError::usage("this toolq was built without `nats`; nothing ran").with_hint(
        "packages of toolq have it; from source: `cargo install --locked --path . --features nats`",
    )
}
