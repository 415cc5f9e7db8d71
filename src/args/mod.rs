//! Flags and values that several commands have.

pub(crate) mod approvals;
pub(crate) mod call;
pub(crate) mod check;
pub(crate) mod complete;
pub(crate) mod finding;
pub(crate) mod generate;
pub(crate) mod init;
pub(crate) mod input;
pub(crate) mod log;
pub(crate) mod plan;
pub(crate) mod replay;
pub(crate) mod run;
pub(crate) mod serve;
pub(crate) mod servers;
pub(crate) mod shared_flags;
pub(crate) mod tools;
pub(crate) mod values;
