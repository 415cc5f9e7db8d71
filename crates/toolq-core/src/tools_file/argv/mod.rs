//! Finds the arguments of a command that name a program or contain code. Values from the input must not become part of
//! them.

mod classify;
mod hints;
mod interpreters;
mod risky_programs;
mod started_files;
mod stdin_code;
mod steering_variables;
mod wrapper_argv;
mod wrappers;

pub(crate) use classify::ArgRole;
pub(crate) use hints::{SCRIPT_VALUE_HINT, code_value_hint};
pub use started_files::{StartedFile, find_started_files};
pub(crate) use stdin_code::find_stdin_code_reader;
pub(crate) use steering_variables::is_steering_variable;
pub(crate) use wrapper_argv::{classify_wrapped_args, find_handover, find_shell_text_program};
pub(crate) use wrappers::{CONTAINER_OPTIONS, base_name};
