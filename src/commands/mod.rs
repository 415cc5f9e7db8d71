//! The commands, one module each.

pub(crate) mod approvals;
pub(crate) mod call;
pub(crate) mod check;
pub(crate) mod complete;
pub(crate) mod generate;
pub(crate) mod init;
pub(crate) mod log;
pub(crate) mod plan;
#[cfg(feature = "nats")]
pub(crate) mod queue;
#[cfg(not(feature = "nats"))]
pub(crate) mod queue_absent;
pub(crate) mod replay;
pub(crate) mod run;
pub(crate) mod serve;
pub(crate) mod servers;
mod tool_listing;
pub(crate) mod tools;
