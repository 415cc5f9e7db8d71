//! Which arguments of a command are a program, or the source text of one. No value of an input may become part of those.

mod classify;
mod hints;
mod interpreters;
mod wrappers;

pub(crate) use classify::{Role, roles};
pub(crate) use hints::{SCRIPT_BESIDE, value_beside};
pub(crate) use wrappers::base_name;
