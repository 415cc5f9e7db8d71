//! The calls of a session log with their times: read once, for pages, traces and estimates.

mod log_timeline;
mod timeline_call;

pub(crate) use log_timeline::{LogTimeline, LoggedRun, TimelineReader};
pub(crate) use timeline_call::TimelineCall;
