//! How what is started, or sent, gets nowhere.

/// Why a program could not be started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpawnFault {
    /// The program as declared.
    pub program: String,
    /// The folder that it was to run in, seen from the root, where that is the cause.
    pub folder: Option<String>,
    /// The operating system's error number (errno).
    pub errno: i32,
}

/// A request that found no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transport {
    /// How far it came.
    pub phase: TransportPhase,
    /// Scheme, host and port of the request, without user, path or query.
    pub origin: String,
    /// The cause in words.
    pub detail: String,
}

/// How far a request came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TransportPhase {
    /// It could not be built from the values given; nothing was sent.
    Build,
    /// The name was not resolved or nobody listened; nothing was sent.
    Connect,
    /// It may have been sent, and no complete head of a response came.
    Response,
    /// The body broke off.
    Body,
    /// The body is larger than what is taken.
    TooLarge,
}
