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

mod args;
mod commands;
mod context;
mod environment;
mod events;
mod input;
pub mod log_view;
mod man_page;
mod output;
#[doc(hidden)]
pub mod program;
mod replay;
mod session;
mod terminal;
