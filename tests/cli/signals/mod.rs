//! Runs that get signals, are suspended, lose the reader of their output, or exceed their budget. Every call gets its
//! result, the log is complete, and no process is left.

mod budgets;
mod killed;
mod marked_run;
mod output_readers;
#[cfg(target_os = "linux")]
mod pid_namespaces;
mod suspend;
mod terminal;
mod termination;
