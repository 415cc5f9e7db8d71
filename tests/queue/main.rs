//! `toolq queue`, with a real nats-server. Without one, the tests are skipped, and say so.

#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "tests may panic, and read their own environment"
)]

mod canceling;
mod dead_turns;
mod documentation;
mod doubts;
mod faults;
mod forgotten_turns;
mod handing_back;
mod large_bodies;
mod lost_workers;
mod managing;
mod memory;
mod nats_server;
mod order;
mod queue_sandbox;
mod submitting;
#[path = "../support/mod.rs"]
mod support;
