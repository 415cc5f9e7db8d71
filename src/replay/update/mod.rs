//! Updates the results in a recording. All other bytes stay the same.

mod rewrite;

pub(crate) use rewrite::{FileStamp, RecordingEdit, rewrite_reply, update_recording};
