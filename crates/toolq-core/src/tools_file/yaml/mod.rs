//! Parses YAML text into a tree of nodes with their positions, or reports every syntax problem.

mod indentation;
mod parse;
mod plain_scalar;
mod tree;

pub use parse::parse_yaml;
pub use tree::YamlContent;
pub(crate) use tree::{YamlEntry, YamlNode};
