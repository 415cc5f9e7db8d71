//! Finds the differences between a recorded result and the current one.

mod id_renaming;
mod mismatch;

pub(crate) use id_renaming::IdRenaming;
pub(crate) use mismatch::{CompareRules, ResultMismatch, find_mismatches};
