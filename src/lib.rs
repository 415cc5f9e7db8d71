//! Answers a language model's tool calls.
//!
//! ```text
//! stdin ─► parse ─► validate ─► plan ─► execute ─► respond ─► stdout
//!                                          ├─► record ─► session log
//!                                          └─► report ─► stderr, --events
//! ```
//!
//! The modules are the stages, in the order in which data meets them. A stage imports what stands before it, never what
//! comes after.

pub mod model;
pub mod parse;
pub mod validate;
pub mod plan;
pub mod respond;
pub mod execute;
pub mod record;
pub mod report;
pub mod replay;
pub mod cli;
