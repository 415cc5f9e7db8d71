//! Finds the arguments of a command that name a program or contain code. Values from the input must not become part of
//! them. What programs do with their arguments is in a table, `programs.txt`; a program that isn't there is assumed to treat
//! them as data.

mod programs;
mod roles;
mod started_files;
mod stdin_code;

pub(crate) use programs::{base_name, find_replacement, find_rules, is_steering_variable};
pub(crate) use roles::{ArgRole, classify_wrapped_args, find_code_wrapper, find_handover};
pub use started_files::{StartedFile, find_started_files};
pub(crate) use stdin_code::find_stdin_code_reader;
