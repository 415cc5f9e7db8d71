//! MCP backings: call the tools of servers, each of which is a program that serves many calls.

mod announcement;
mod connection;
mod lister;
mod notices;
mod outcome;
mod output_schemas;
mod process;
mod proxied_server;
mod restart_budget;
mod runner;
mod server_life;

pub use announcement::ServerAnnouncement;
pub use lister::ServerLister;
pub(crate) use notices::{ServerNotice, emit_notices};
pub use proxied_server::{ProxiedServer, outcome_of_answer};
pub(crate) use runner::McpRunner;
