//! Finds likely mistakes in a well-formed tools.yaml: missing programs, unmasked secrets, shell syntax that no shell
//! reads, paths that aren't kept inside the root, scripts that evaluate or split a value, `when` schemas that check
//! nothing, safe tools that start late, servers without a version, headers that no client can send, and sandboxes with a
//! way out.

mod environment;
mod evaluated_values;
mod header_marks;
mod late_start;
mod sandboxes;
mod script_arguments;
mod script_hazards;
mod secrets;
mod shell_syntax;
mod shell_words;
mod unconfined_paths;
mod unpinned_packages;
mod unquoted_parameters;
pub(crate) mod when_schema;

pub use environment::find_warnings;
pub use header_marks::find_header_warnings;
pub use sandboxes::{SandboxSurroundings, find_sandbox_warnings};
