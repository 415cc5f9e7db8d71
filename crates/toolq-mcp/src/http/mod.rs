//! What messages need beside their body where each of them is an HTTP request: headers that repeat parts of the body.

mod outgoing;
mod param_headers;
mod posted_body;
#[cfg(test)]
mod tests;

pub use outgoing::OutgoingMessage;
pub use param_headers::{ParamHeaders, PostHeaders, decode_header_value, encode_header_value};
pub use posted_body::{PostError, PostTarget, PostedBody};

/// The header with the revision of the protocol.
pub const PROTOCOL_VERSION_HEADER: &str = "mcp-protocol-version";
/// The header with the id of a session of the legacy era.
pub const SESSION_ID_HEADER: &str = "mcp-session-id";
/// The header with the method of a request of the modern era.
pub const METHOD_HEADER: &str = "mcp-method";
/// The header with the name of the tool that a request of the modern era calls.
pub const NAME_HEADER: &str = "mcp-name";
/// The header with the span of a call, by the W3C recommendation Trace Context.
pub const TRACEPARENT_HEADER: &str = "traceparent";
/// The header with what other systems keep in the trace of that span.
pub const TRACESTATE_HEADER: &str = "tracestate";
