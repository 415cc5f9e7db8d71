use crate::types::answer::Content;

/// The result of a call as a recording has it.
#[derive(Debug, Clone)]
pub struct Recorded {
    /// What the model read.
    pub content: Content,
    /// Whether it was told of an error; none where the form doesn't say.
    pub is_error: Option<bool>,
    /// The call was answered without having been run.
    pub skipped: bool,
}
