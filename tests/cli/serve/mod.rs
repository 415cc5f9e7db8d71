//! `toolq serve` as an MCP client sees it: JSON-RPC on pipes, in both eras of the protocol.

mod approvals;
mod calls;
mod client;
mod ending;
mod other_servers;
mod protocol;
mod read_output;
mod selection;
