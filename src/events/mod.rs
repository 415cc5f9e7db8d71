//! Consumers of a run's events.
//!
//! [`NdjsonSink`] writes events as JSON lines for programs; the sinks for people are in `terminal`. [`show_to_all`]
//! passes events to all of them, after the session log has them. Only the log can stop or slow down a run; the others can't.

mod event_line;
mod ndjson;
pub(crate) mod target;

pub(crate) use ndjson::NdjsonSink;
pub(crate) use target::{Observed, show_to_all};
