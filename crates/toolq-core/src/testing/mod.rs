//! Sample tools, calls and events for tests, built without a file.

mod declared;
mod samples;

pub use declared::{template, tool_with_backing, tool_with_schema, tools_in};
pub use samples::{
    accepted, answer, call, finish, hostile, play, rejected, running, succeeded, timed, tool, tools,
};
