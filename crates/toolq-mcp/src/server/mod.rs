//! A server's side of one connection to a client: lists tools, and hands out the calls of them.

pub(crate) mod request;
mod result;
pub(crate) mod session;
#[cfg(test)]
mod tests;

pub use request::{
    Elicitation, ElicitationForm, ElicitationReply, InputResponse, QuestionId, ServedCallId,
    ServerEvent, ToolCall,
};
pub use result::ToolCatalog;
pub use session::ServerSession;
