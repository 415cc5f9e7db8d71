//! Parts of the scheduler for tests in other crates. Not a part of the interface.

pub use crate::scheduler::{ConcurrencyLimit, Permit};
