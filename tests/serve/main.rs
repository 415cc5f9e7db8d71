//! `toolq serve` as an MCP client sees it: JSON-RPC on pipes, in both eras of the protocol.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests may panic")]
#![allow(
    clippy::disallowed_methods,
    reason = "tests read their own environment"
)]

#[path = "../support/mod.rs"]
mod support;

mod approvals;
mod calls;
mod client;
mod ending;
mod other_servers;
mod protocol;
mod read_output;
mod reload;
mod selection;
