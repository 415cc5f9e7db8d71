//! Renders outcomes as the text that a model reads: what the texts are made of, and below, the causes by kind.

mod agent;
mod command;
mod failure_cause;
mod http;
mod limits;
mod outcome_text;
mod rejected;
mod truncation;

use std::borrow::Cow;

use serde_json::value::{RawValue, to_raw_value};

pub use failure_cause::failure_cause;
pub use outcome_text::{
    AnswerWording, build_answer, describe_failure, empty_output_text, max_turns_text,
};

/// What to do about a `write` call that ended in a way that leaves its effect open.
pub(crate) const MAYBE_DONE_HINT: &str =
    "it may have done part of its work: check before calling it again.";

/// What a model reads about a call that failed or didn't run.
#[derive(Debug, Default)]
pub(crate) struct ErrorText {
    /// What happened, in one sentence.
    pub(crate) error: String,
    /// The call's output, or one line per problem.
    pub(crate) details: String,
    /// What to do now.
    pub(crate) hint: Cow<'static, str>,
}

impl ErrorText {
    pub(crate) fn new(error: impl Into<String>, hint: impl Into<Cow<'static, str>>) -> Self {
        Self {
            error: error.into(),
            details: String::new(),
            hint: hint.into(),
        }
    }

    pub(crate) fn with_hint(self, hint: impl Into<Cow<'static, str>>) -> Self {
        Self {
            hint: hint.into(),
            ..self
        }
    }

    pub(crate) fn with_details(mut self, details: String) -> Self {
        self.details = details;
        self
    }
}

/// Joins the parts that aren't empty, each on its own line.
fn join_lines<const N: usize>(parts: [&str; N]) -> String {
    let parts = parts.map(|part| part.trim_end_matches('\n'));
    let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    parts.join("\n")
}

/// Builds a text block in Anthropic's format.
pub(crate) fn text_block(text: &str) -> Option<Box<RawValue>> {
    to_raw_value(&serde_json::json!({"type": "text", "text": text})).ok()
}

/// Renders what a program had written when it was stopped; empty if it hadn't written anything.
pub(crate) fn partial_output_text(output: &str, stderr: &str) -> String {
    match join_streams(output, stderr) {
        nothing if nothing.is_empty() => nothing,
        something => format!("Output until then:\n{something}"),
    }
}

/// Joins the output streams of a program. They are labeled only if it used both.
pub(crate) fn join_streams(output: &str, stderr: &str) -> String {
    if output.is_empty() || stderr.is_empty() {
        return join_lines([stderr, output]);
    }
    join_lines(["stderr:", stderr, "stdout:", output])
}
