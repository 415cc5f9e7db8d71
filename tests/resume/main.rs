//! Runs that are killed, ended or finished, and resumed: what has its result is printed, what is missing runs, what may
//! have run is in doubt.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that can't go on fails"
)]

mod arriving;
mod changes;
mod doubt;
mod finished;
mod kills;
mod log_input;
mod probes;
mod stage;
#[path = "../support/mod.rs"]
mod support;
mod told;
