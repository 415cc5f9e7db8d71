//! Requests against servers that misbehave on purpose.

#![allow(clippy::unwrap_used, reason = "tests and their helpers may unwrap")]

mod bodies;
mod breaks;
mod doubt;
mod hosts;
#[path = "../scene/mod.rs"]
mod scene;
mod redirects;
mod requests;
mod retries;
mod secrets;
mod server;
#[path = "../support/mod.rs"]
mod support;

use toolq_core::types::{Outcome, TransportPhase};

/// How far a request came that found no answer.
#[track_caller]
fn phase(outcome: &Outcome) -> TransportPhase {
    match outcome {
        Outcome::Transport(transport) => transport.phase,
        other => panic!("{other:?}"),
    }
}
