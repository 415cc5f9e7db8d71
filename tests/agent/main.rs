//! Agents against a model's API that is scripted on loopback.

#![allow(clippy::unwrap_used, reason = "tests and their helpers may unwrap")]

mod api;
mod scenes;
#[path = "../resume/stage.rs"]
#[allow(dead_code, reason = "made for the tests of resume")]
mod stage;
mod speech;
#[path = "../support/mod.rs"]
mod support;

#[allow(dead_code, reason = "agents are not spoken to in all of them")]
#[path = "../streams/vendors.rs"]
mod vendors;

mod alone;
mod among;
mod builtins;
mod coordinator;
mod counted;
mod cost;
mod described;
mod doubts;
mod limits;
mod openai;
mod play;
mod killed;
mod recorded;
mod resumed;
mod spoken;
mod spoken_ends;
mod stops;
mod story;
mod sums;
mod told;
mod troubles;
mod turns;
