//! Samples for the tests of toolq's crates.

mod events;
mod linear_time;
mod samples;

pub use events::{emit_finished, emit_turn, hostile_text, sample_answer, success_outcome};
pub use linear_time::assert_linear_time;
pub use samples::{
    accepted_call, call_with_estimate, rejected_call, sample_call, sample_template, sample_tool,
    sample_tools, tool_with_backing, tool_with_schema, tools_with_root, with_program,
};
