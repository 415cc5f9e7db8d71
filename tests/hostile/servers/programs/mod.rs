//! Hostile programs, by what is wrong with them.

mod answers;
mod contents;
mod deaths;
mod floods;
mod framing;
mod handshakes;
mod lists;
mod own_requests;
mod processes;

use crate::servers::script::HostileServer;
use crate::servers::wire::Wire;

/// Returns all programs. Those that take long come first.
pub fn all() -> impl Iterator<Item = HostileServer> {
    let kinds = [
        handshakes::SERVERS,
        processes::SERVERS,
        floods::SERVERS,
        deaths::SERVERS,
        answers::SERVERS,
        contents::SERVERS,
        framing::SERVERS,
        lists::SERVERS,
        own_requests::SERVERS,
    ];
    kinds.into_iter().flatten().copied()
}

/// Is the program of this name.
pub fn play(name: &str) {
    let server = all().find(|server| server.name == name);
    Wire::serve(server.unwrap().script());
}
