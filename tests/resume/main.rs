//! Resuming runs that were killed, interrupted or finished: results in the log are printed, missing calls run, and
//! calls that may have run are in doubt.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests may panic")]

mod changed_inputs;
mod in_doubt;
mod kill_and_resume;
mod log_input;
mod probes;
mod repetition;
mod restored_results;
mod resume_sandbox;
mod streaming_input;
#[path = "../support/mod.rs"]
mod support;
mod user_messages;
