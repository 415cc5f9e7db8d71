//! Generates a starter tools.yaml from existing tool declarations.

mod starter;
mod yaml_writer;

pub use starter::starter_tools_file;
