//! The calls of a session log with their times: read once, for pages, traces and estimates.

mod log_timeline;

pub(crate) use log_timeline::{LogTimeline, LoggedRun, TimelineCall, TimelineReader};
