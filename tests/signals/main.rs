//! Runs that get signals, are suspended, lose the reader of their output, or exceed their budget. Every call gets its
//! result, the log is complete, and no process is left.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    reason = "tests may panic, and print why they are skipped"
)]

mod budgets;
mod killed;
mod marked_run;
mod output_readers;
#[cfg(target_os = "linux")]
mod pid_namespaces;
#[path = "../support/mod.rs"]
mod support;
mod suspend;
mod terminal;
mod termination;
