//! A recorded result beside today's: where do they differ?

mod mismatch;
mod number;
mod renaming;
mod walk;

pub(crate) use mismatch::{Mismatch, Rules, mismatches};
pub(crate) use renaming::Renaming;
