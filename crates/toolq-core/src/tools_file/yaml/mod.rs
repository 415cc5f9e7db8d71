//! YAML text → one tree of nodes with their positions, or every syntax problem.

mod parse;
mod reader;
mod syntax_error;
mod tree;

pub use parse::parse_yaml;
pub use tree::Data;
pub(crate) use tree::{Entry, Node};
