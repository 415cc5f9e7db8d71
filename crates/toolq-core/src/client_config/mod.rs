//! Reads MCP servers from the configuration of other programs, so that they need not be written down again.

mod endpoint;
mod json;
mod secrets;
mod servers;
mod templates;

pub use json::read_client_config;
pub use servers::{ClientConfig, ConfiguredServer};
