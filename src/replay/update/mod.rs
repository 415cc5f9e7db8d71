//! Updates the results in a recording. All other bytes stay the same.

mod edit;
mod rewrite;

pub(crate) use edit::{FileStamp, RecordingEdit, update_recording};
pub(crate) use rewrite::rewrite_reply;
