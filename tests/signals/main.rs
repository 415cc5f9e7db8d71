//! What becomes of a run that is signalled, stopped, no longer read, or out of its budget: every call is answered, the
//! log is whole, nobody is left.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that can't go on fails"
)]

mod budgets;
mod ended;
mod reader;
mod started;
mod stopped;
#[path = "../support/mod.rs"]
mod support;
mod terminal;
