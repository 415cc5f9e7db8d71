//! Calls that run while the input is still arriving, as a stream of events or line by line.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests may panic")]

mod aborted_streams;
mod early_start;
mod follow;
mod interactive_run;
mod partial_inputs;
mod stream_equivalence;
#[path = "../support/mod.rs"]
mod support;
mod vendor_messages;
