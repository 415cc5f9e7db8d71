//! HTTP requests against servers that misbehave on purpose.

mod bodies;
mod broken_connections;
mod faulty_server;
mod host_allowlist;
mod in_doubt;
mod redirects;
mod requests;
mod retries;
mod secrets;

use toolq_core::types::{Outcome, TransportPhase};

/// Returns the phase in which a request failed without a response.
#[track_caller]
fn transport_phase(outcome: &Outcome) -> TransportPhase {
    match outcome {
        Outcome::TransportFailed(transport) => transport.phase,
        other => panic!("{other:?}"),
    }
}
