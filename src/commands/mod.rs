//! The commands, one module each.

pub(crate) mod approvals;
pub(crate) mod call;
pub(crate) mod check;
pub(crate) mod complete;
pub(crate) mod generate;
pub(crate) mod init;
pub(crate) mod log;
pub(crate) mod plan;
pub(crate) mod queue;
pub(crate) mod replay;
pub(crate) mod run;
pub(crate) mod serve;
pub(crate) mod servers;
pub(crate) mod tools;
