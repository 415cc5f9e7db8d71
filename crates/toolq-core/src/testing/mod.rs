//! Sample tools, calls, and events for tests, built without a file.

mod parsers;
mod samples;
mod tool_samples;

pub use parsers::{SseData, decode_sse, parse_argument_template};
pub use samples::{
    accepted_call, call_with_estimate, emit_finished, emit_turn, hostile_text, rejected_call,
    sample_answer, sample_call, sample_tool, sample_tools, success_outcome, with_program,
};
pub use tool_samples::{sample_template, tool_with_backing, tool_with_schema, tools_with_root};
