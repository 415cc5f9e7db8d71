//! Finds likely mistakes in a well-formed tools.yaml: missing programs, unmasked secrets, shell syntax that no shell
//! reads, paths that aren't kept inside the root, scripts that evaluate a value, and `when` schemas that check nothing.

mod environment;
mod script_arguments;
mod secrets;
mod shell_syntax;
mod unconfined_paths;
pub(crate) mod when_schema;

pub use environment::find_warnings;
