//! The calls of a session log with their times: read once, drawn as a page or written as trace events.

mod lanes;
mod log_timeline;
mod timeline_call;
mod trace_events;

#[cfg(feature = "otlp")]
pub(crate) use log_timeline::keep_beginning;
pub(crate) use log_timeline::{LogTimeline, LoggedRun, TimelineReader};
pub(crate) use timeline_call::TimelineCall;
#[cfg(feature = "otlp")]
pub(crate) use timeline_call::{TimelineAttempt, TimelineEnd, TimelineResponse};
pub(crate) use trace_events::write_trace_events;
