//! Reads MCP servers from the configuration of other programs, so that they need not be written down again.

mod secrets;
mod servers;

pub use servers::{ClientConfig, ConfiguredServer, read_client_config};
