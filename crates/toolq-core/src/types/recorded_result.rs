//! Results found in recordings.

use crate::types::answer::ResultContent;

/// The result of a call as found in a recording.
#[derive(Debug, Clone)]
pub struct RecordedResult {
    /// What the model received.
    pub content: ResultContent,
    /// Whether the model received it as an error, or `None` if the format doesn't say.
    pub is_error: Option<bool>,
    /// Whether the call was answered without being run.
    pub skipped: bool,
    /// Whether the call was rejected before anything ran, or `None` if the format doesn't say.
    pub rejected: Option<bool>,
}
