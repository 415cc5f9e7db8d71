//! Agents, run against a scripted model API on loopback.

mod expert_fixture;

mod again;
mod agent_loop;
mod agent_sandbox;
mod api_errors;
mod builtins;
mod called_by_a_person;
mod chat_completions;
mod concurrency;
mod coordinator;
mod cost;
mod cost_totals;
mod event_timeline;
mod in_doubt;
mod limits;
mod log_and_events;
mod read_output;
mod self_describing_tools;
mod stop_reasons;
mod unreachable_api;
mod usage_accounting;
