//! Generates a starter tools.yaml from existing tool declarations.

mod exact_json;
mod starter;

pub use starter::starter_tools_file;
