//! A server's side of one connection to a client: lists tools, and hands out the calls of them.

mod catalog;
mod elicitation;
mod event;
pub(crate) mod request;
mod result;
pub(crate) mod session;

#[cfg(test)]
mod tests;

pub use catalog::{SharedCatalog, ToolCatalog};
pub use elicitation::{Elicitation, ElicitationForm, ElicitationReply, InputResponse, QuestionId};
pub use event::{ServedCallId, ServerEvent, ToolCall};
pub use session::ServerSession;
