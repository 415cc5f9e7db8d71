//! MCP backings: call the tools of servers, each of which serves many calls: a program, or one that runs elsewhere.

mod announcement;
mod connection;
mod http_exchange;
mod http_transport;
mod incoming;
mod outcome;
mod process;
mod runner;
mod server_connections;
mod server_life;
mod transport;

pub use announcement::ServerAnnouncement;
pub(crate) use server_connections::McpRunner;
pub(crate) use server_life::{ServerNotice, emit_notices};
