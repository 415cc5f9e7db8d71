//! Agents, run against a scripted model API on loopback.

#![allow(clippy::unwrap_used, reason = "tests and their helpers may unwrap")]

mod expert_fixture;
#[path = "../support/recorded_data.rs"]
mod recorded_data;
#[path = "../resume/resume_sandbox.rs"]
#[allow(
    dead_code,
    reason = "shared with the tests of resume, which use all of it"
)]
mod resume_sandbox;
mod scripted_api;
mod streaming_fixture;
#[path = "../support/mod.rs"]
mod support;

#[allow(
    dead_code,
    reason = "shared with the tests of streams, which use all of it"
)]
#[path = "../streams/vendor_messages.rs"]
mod vendor_messages;

mod aborted_streams;
mod agent_command;
mod agent_loop;
mod agent_sandbox;
mod api_errors;
mod builtins;
mod chat_completions;
mod concurrency;
mod coordinator;
mod cost;
mod cost_totals;
mod early_dispatch;
mod event_timeline;
mod in_doubt;
mod kill_and_resume;
mod limits;
mod log_and_events;
mod read_output;
mod recorded_conversations;
mod resume;
mod self_describing_tools;
mod stop_reasons;
mod unreachable_api;
mod usage_accounting;
