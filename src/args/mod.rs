//! Flags and values that several commands have.

pub(crate) mod help;
pub(crate) mod shared_flags;
pub(crate) mod values;
