//! The Model Context Protocol (MCP) for tools, in both of its eras.
//!
//! This crate does no input or output of its own: the owner of a connection passes in the bytes that arrived, and sends
//! the bytes that it gets back. So the same code serves pipes and HTTP, and every situation can be tested without a
//! server.
//!
//! ```text
//! bytes ──► framing ──► message ──► client or server ──► events
//!                                     │
//! bytes ◄──────── outbox ◄────────────┘
//! ```
//!
//! Numbers pass digit by digit: arguments and results are raw JSON, never parsed into floats.
//!
//! The specification: <https://modelcontextprotocol.io/specification/2026-07-28>. Types have its names.

pub mod client;
mod framing;
pub mod http;
mod message;
mod protocol;
pub mod server;
mod tool;

pub use framing::{Frame, LineFramer};
pub use message::{Message, NotMessage, RequestId, RpcError, parse_messages};
pub use protocol::{Implementation, ProtocolEra, ProtocolPreference, ProtocolVersion};
pub use tool::{CallToolResult, ContentBlock, ResourceContents, Tool, ToolAnnotations};
