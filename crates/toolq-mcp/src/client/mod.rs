//! A client's side of one connection to a server of tools.

mod error;
mod event;
mod handshake;
mod request_meta;
mod session;
mod tool_list;

#[cfg(test)]
mod tests;

pub use error::{CallError, HandshakeError, ToolListError};
pub use event::{CallId, ServerIdentity, SessionEvent, StrayCounts, ToolList};
pub use request_meta::CallMeta;
pub use session::ClientSession;
