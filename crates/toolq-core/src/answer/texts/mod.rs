//! Renders outcomes as the text that a model reads. Each kind of cause has its own file.

mod agent;
mod command;
mod error_text;
mod failure_cause;
mod http;
mod limits;
mod outcome_text;
mod rejected;
mod truncation;

pub use failure_cause::failure_cause;
pub use outcome_text::{
    AnswerWording, build_answer, describe_failure, empty_output_text, max_turns_text,
};
