//! Agents against a model's API that is scripted on loopback.

#![allow(clippy::unwrap_used, reason = "tests and their helpers may unwrap")]

mod api;
mod scenes;
#[path = "../support/mod.rs"]
mod support;

mod alone;
mod among;
mod builtins;
mod coordinator;
mod cost;
mod described;
mod limits;
mod openai;
mod recorded;
mod stops;
mod story;
mod sums;
mod told;
mod troubles;
mod turns;
