//! The one thing that is read from a session log: how long the calls took.

use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::time::Duration;

use serde::Deserialize;

use crate::Result;

/// The fields of a record that tell time.
#[derive(Debug, Deserialize)]
struct Record {
    /// Milliseconds since 1970.
    timestamp: u64,
    r#type: String,
}

/// From the first `tool_start` of a log to its last `tool_result`.
///
/// # Errors
/// No call was started, or the log can't be read.
pub fn calls_took(log: &Path) -> Result<Duration> {
    let mut first = None;
    let mut last = None;
    for line in BufReader::new(File::open(log)?).lines() {
        let record: Record = serde_json::from_str(&line?)?;
        match record.r#type.as_str() {
            "tool_start" => first = first.or(Some(record.timestamp)),
            "tool_result" => last = Some(record.timestamp),
            _ => {}
        }
    }
    match (first, last) {
        (Some(first), Some(last)) => Ok(Duration::from_millis(last.saturating_sub(first))),
        _ => Err("the session log has no call".into()),
    }
}
