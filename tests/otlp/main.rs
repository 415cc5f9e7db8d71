//! `--otlp`: what a receiver gets of a run, and what a run does without one.

#![allow(
    clippy::unwrap_used,
    reason = "a failing unwrap is what a test should fail on"
)]

mod content;
mod failing_receivers;
mod metrics;
mod propagation;
mod protobuf;
mod receiver;
mod replays;
mod spans;
#[path = "../support/mod.rs"]
mod support;
mod unused;
