//! Reads from a session log how long the calls took.

use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::time::Duration;

use serde::Deserialize;

use crate::Result;

/// The fields of a record that are needed for timing.
#[derive(Debug, Deserialize)]
struct RecordTime {
    /// Milliseconds since 1970.
    timestamp: u64,
    r#type: String,
}

/// Returns the time from the first `tool_start` in a log to its last `tool_result`.
///
/// # Errors
/// The log can't be read, or has no start or no result of a call.
pub fn calls_duration(log: &Path) -> Result<Duration> {
    let mut first = None;
    let mut last = None;
    for line in BufReader::new(File::open(log)?).lines() {
        let record: RecordTime = serde_json::from_str(&line?)?;
        match record.r#type.as_str() {
            "tool_start" => first = first.or(Some(record.timestamp)),
            "tool_result" => last = Some(record.timestamp),
            _ => {}
        }
    }
    match (first, last) {
        (Some(first), Some(last)) => Ok(Duration::from_millis(last.saturating_sub(first))),
        _ => Err("the session log has no finished call".into()),
    }
}
