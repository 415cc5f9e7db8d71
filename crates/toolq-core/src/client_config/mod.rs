//! Reads MCP servers from the configuration of other programs, so that they need not be written down again.

mod codex_toml;
mod endpoint;
mod json;
mod secrets;
mod servers;
mod templates;

pub use codex_toml::read_codex_config;
pub use json::read_json_config;
pub use servers::{ClientConfig, ConfiguredServer};
