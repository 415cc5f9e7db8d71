//! Agents against a model's API that is scripted on loopback.

#![allow(clippy::unwrap_used, reason = "tests and their helpers may unwrap")]

mod api;
mod scenes;
#[path = "../resume/stage.rs"]
#[allow(dead_code, reason = "made for the tests of resume")]
mod stage;
#[path = "../support/mod.rs"]
mod support;

mod alone;
mod among;
mod builtins;
mod coordinator;
mod cost;
mod described;
mod doubts;
mod limits;
mod openai;
mod play;
mod killed;
mod recorded;
mod resumed;
mod stops;
mod story;
mod sums;
mod told;
mod troubles;
mod turns;
