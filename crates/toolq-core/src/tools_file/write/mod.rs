//! Generates a starter tools.yaml from existing tool declarations, or from the servers that another program knows.

pub(crate) mod exact_json;
mod servers;
mod starter;
mod suggestions;

pub use servers::servers_tools_file;
pub use starter::starter_tools_file;
