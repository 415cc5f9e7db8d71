//! Read, check, plan and answer tool calls: pure functions of text and values. Nothing here runs a program, sends a
//! request or knows async.
//!
//! The modules are in the order of the data's flow: [`transcript`] reads calls, [`tools_file`] reads tools.yaml,
//! [`check`] decides whether a call may run and as what, [`plan`] arranges calls in batches, [`answer`] turns outcomes into
//! results.

pub mod answer;
pub mod check;
pub mod json;
pub mod json_schema;
pub mod os;
pub mod plan;
pub mod template;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod text;
pub mod tools_file;
pub mod transcript;
pub mod types;
pub mod url;
