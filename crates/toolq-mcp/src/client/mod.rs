//! A client's side of one connection to a server of tools.

mod event;
mod handshake;
mod session;
#[cfg(test)]
mod tests;
mod tool_list;

pub use event::{CallError, CallId, ServerIdentity, SessionEvent, StrayCounts, ToolList};
pub use handshake::CallMeta;
pub use session::ClientSession;
