//! MCP backings: call the tools of servers, each of which serves many calls: a program, or one that runs elsewhere.

mod announcement;
mod attachments;
mod client_blocks;
mod connection;
mod http_endpoint;
mod http_event_stream;
mod http_exchange;
mod http_transport;
mod lister;
mod notices;
mod outcome;
mod process;
mod restart_budget;
mod result_parts;
mod runner;
mod sent_call;
mod server_connections;
mod server_life;
mod structured_content;
mod transport;

pub use announcement::ServerAnnouncement;
pub use lister::ServerLister;
pub(crate) use notices::{ServerNotice, emit_notices};
pub(crate) use runner::McpRunner;
