//! Finds likely mistakes in a well-formed tools.yaml: missing programs, unmasked secrets, shell syntax that no shell
//! reads, and `when` schemas that check nothing.

mod environment;
mod secrets;
mod shell_syntax;
pub(crate) mod when_schema;

pub use environment::find_warnings;
