//! The program as its users see it: each test runs the binary in a temporary directory.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::missing_panics_doc,
    reason = "tests may panic"
)]
#![allow(
    clippy::print_stdout,
    clippy::format_push_string,
    clippy::disallowed_methods,
    reason = "tests print what they skip, needn't be fast, and read their own environment"
)]

#[path = "../support/mod.rs"]
mod support;

mod agent;
mod approvals;
mod beginner_mistakes;
mod cache;
mod call;
mod check_machine;
mod command_line;
mod composition;
#[cfg(target_os = "linux")]
mod confinement;
mod declarations_export;
mod describe;
mod events;
mod examples;
mod fixtures;
mod follow_control;
mod init;
mod injection;
mod log;
mod log_durability;
mod mcp_http;
mod output_files;
mod plan_matches_run;
#[cfg(not(feature = "nats"))]
mod queue_absent;
mod read_output;
mod readme;
mod recordings;
mod replay;
mod repository;
mod resume;
mod run;
mod secrets;
mod serve;
mod serve_http;
mod servers;
mod signals;
mod start_order;
mod streams;
mod tools_file;
mod tools_lock;
mod unlocked_servers;
mod untrusted_output;
mod unusual_directories;
