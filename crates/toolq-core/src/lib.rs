//! Reads, checks, plans, and answers tool calls: pure functions of text and values. Nothing here runs a program, sends
//! a request, or is async.
//!
//! The stages, in the order of the data flow: [`transcript`] parses calls, [`tools_file`] parses tools.yaml, [`check`]
//! decides whether a call may run and resolves what it runs, [`plan`] arranges calls into batches, [`schedule`] says
//! when they may start, and [`answer`] turns outcomes into results.

pub mod check;
pub mod client_config;
pub mod exit;
pub mod json;
pub mod json_schema;
#[cfg(test)]
#[path = "../../toolq-testing/src/linear_time.rs"]
mod linear_time;
pub mod os;
pub mod plan;
pub mod schedule;
pub mod template;
#[cfg(test)]
#[path = "../../toolq-testing/src/samples.rs"]
mod testing;
pub mod text;
pub mod tools_file;
pub mod tools_lock;
pub mod transcript;
pub mod types;
pub mod url;

#[cfg(test)]
extern crate self as toolq_core; // what the samples below call this crate

pub mod answer;
