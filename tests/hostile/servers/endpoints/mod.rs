//! Hostile servers over HTTP, by what is wrong with them.

mod bodies;
mod connections;
mod event_streams;
mod statuses;

use crate::servers::script::HostileServer;

/// Returns all servers over HTTP.
pub fn all() -> impl Iterator<Item = HostileServer> {
    let kinds = [
        bodies::SERVERS,
        connections::SERVERS,
        event_streams::SERVERS,
        statuses::SERVERS,
    ];
    kinds.into_iter().flatten().copied()
}
