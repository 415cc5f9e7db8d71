//! A server's side of one connection to a client: lists tools, and hands out the calls of them.

mod catalog;
mod event;
pub(crate) mod request;
pub(crate) mod session;

#[cfg(test)]
mod tests;

pub use catalog::{SharedCatalog, ToolCatalog};
pub use event::{CallId, ServerEvent, ToolCall};
pub use session::ServerSession;
