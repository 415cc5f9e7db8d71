//! Declarations of another program → the text of a tools.yaml to start from.

mod starter;
mod yaml;

pub use starter::tools_file;
