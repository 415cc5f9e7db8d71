//! Write new results into a recording. Only the bytes of what differs change.

mod recording;
mod rewrite;

pub(crate) use recording::{Edit, Stamp, update};
pub(crate) use rewrite::rewritten;
