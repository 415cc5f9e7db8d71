//! HTTP requests against servers that misbehave on purpose.

#![allow(clippy::unwrap_used, reason = "tests and their helpers may unwrap")]

mod bodies;
mod broken_connections;
#[path = "../engine_turn/mod.rs"]
mod engine_turn;
mod faulty_server;
mod host_allowlist;
mod in_doubt;
mod redirects;
mod requests;
mod retries;
mod secrets;
#[path = "../support/mod.rs"]
mod support;

use toolq_core::types::{Outcome, TransportPhase};

/// Returns the phase in which a request failed without a response.
#[track_caller]
fn transport_phase(outcome: &Outcome) -> TransportPhase {
    match outcome {
        Outcome::TransportFailed(transport) => transport.phase,
        other => panic!("{other:?}"),
    }
}
