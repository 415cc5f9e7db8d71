//! Warnings about a tools.yaml that is valid: programs that are missing, secrets that aren't masked, shell syntax that no shell reads.

mod environment;
mod secrets;
mod shell_syntax;
pub(crate) mod when;

pub use environment::warnings;
