//! What becomes of a run that is signalled, stopped, no longer read, or out of its budget: every call is answered, the
//! log is whole, nobody is left.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a test that can't go on fails, and one that is skipped says so"
)]

mod budgets;
mod ended;
#[cfg(target_os = "linux")]
mod namespaces;
mod reader;
mod started;
mod stopped;
#[path = "../support/mod.rs"]
mod support;
mod terminal;
