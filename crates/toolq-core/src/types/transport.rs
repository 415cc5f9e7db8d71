//! Why a program couldn't be started, or a request got no response.

/// Why a program couldn't be started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpawnError {
    /// The program as declared.
    pub program: String,
    /// The working directory relative to the root, if it is the cause.
    pub directory: Option<String>,
    /// The interpreter that the first line of the program names and that isn't there, if that is the cause.
    pub interpreter: Option<String>,
    /// Why the program can't be started in its `sandbox`, if that is the cause.
    pub confinement: Option<String>,
    /// The operating system's error number (errno).
    pub errno: i32,
}

/// Why a request got no complete response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TransportError {
    /// How far the request got.
    pub phase: TransportPhase,
    /// Scheme, host and port of the request, without user, path or query; or `the host process`, as within a sentence.
    pub origin: String,
    /// The cause, as far as it decides what to do about it.
    pub cause: TransportCause,
    /// The cause, as a message.
    pub detail: String,
}

/// The causes of a failed request that call for different reactions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum TransportCause {
    /// Nothing listens at the address.
    ConnectionRefused,
    /// The host has an address that isn't public, and the tool may only contact public ones.
    NonPublicAddress,
    /// The host name couldn't be resolved.
    UnknownHost,
    /// A secure connection couldn't be established.
    Tls,
    /// Any other cause.
    #[default]
    Other,
}

/// How far a request got.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TransportPhase {
    /// It couldn't be built from the given values. Nothing was sent.
    Build,
    /// The name wasn't resolved, or nothing accepted the connection. Nothing was sent.
    Connect,
    /// It may have been sent, but no complete response head arrived.
    Response,
    /// The response body broke off.
    Body,
    /// The response body exceeds the size limit.
    TooLarge,
}
