//! Renders results for programs: with how each call ended, which no dialect has a place for.

use serde::Serialize;

use crate::answer::render::answer_list::AnswerList;
use crate::answer::render::anthropic::ToolResultContent;
use crate::types::CallAnswer;

/// One result.
#[derive(Serialize)]
pub struct ResultRow<'a> {
    tool_use_id: &'a str,
    tool_name: &'a str,
    status: &'a str,
    is_error: bool,
    content: ToolResultContent<'a>,
    error: Option<&'a str>,
    duration_ms: u128,
    attempts: u32,
    /// The age of a result from the cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    cached_age_ms: Option<u128>,
}

/// Builds the row of each result.
pub fn build_rows(answers: &[CallAnswer]) -> AnswerList<'_, ResultRow<'_>> {
    AnswerList::new(answers, build_row)
}

/// Builds the row of one result.
pub fn build_row(answer: &CallAnswer) -> ResultRow<'_> {
    ResultRow {
        tool_use_id: &answer.tool_use_id,
        tool_name: &answer.tool_name,
        status: answer.report.status.as_str(),
        is_error: answer.is_error,
        content: ToolResultContent(&answer.content),
        error: answer.report.error.as_deref(),
        duration_ms: answer.report.duration.as_millis(),
        attempts: answer.report.attempts,
        cached_age_ms: answer.report.cached_age.map(|age| age.as_millis()),
    }
}
