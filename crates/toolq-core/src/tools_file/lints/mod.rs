//! Finds likely mistakes in a well-formed tools.yaml: missing programs, unmasked secrets, shell syntax that no shell
//! reads, paths that aren't kept inside the root, `when` schemas that check nothing, safe tools that start late, servers
//! without a version, headers that no client can send, and sandboxes with a way out.

mod environment;
mod header_marks;
mod late_start;
mod sandboxes;
mod secrets;
mod shell_syntax;
mod unconfined_paths;
mod unpinned_packages;
pub(crate) mod when_schema;

pub use environment::find_warnings;
pub use header_marks::find_header_warnings;
pub use sandboxes::{SandboxSurroundings, find_sandbox_warnings};
