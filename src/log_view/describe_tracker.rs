//! Shows the results of tools' `describe` programs, a line for each.

use std::collections::BTreeMap;
use std::time::Duration;

use uuid::Uuid;

use toolq_core::text::format_duration;
use toolq_core::types::Status;
use toolq_log::records::DescribeRecord;
use toolq_log::{Corruption, Record};

/// The tools whose `describe` program has started but has no recorded end, in start order.
#[derive(Debug, Default)]
pub struct DescribeTracker(BTreeMap<u64, (Uuid, String)>);

impl DescribeTracker {
    /// Adds a `describe_start` record.
    ///
    /// # Errors
    /// The record's metadata doesn't match its type.
    pub fn start(&mut self, record: &Record) -> Result<(), Corruption> {
        let fields: DescribeRecord<'_> = record.parse_metadata()?;
        self.0
            .insert(record.seq, (record.id, fields.tool_name.into_owned()));
        Ok(())
    }

    /// Adds a `describe_end` record and returns its text.
    ///
    /// # Errors
    /// The record's metadata doesn't match its type.
    pub fn end(&mut self, record: &Record) -> Result<String, Corruption> {
        self.0.retain(|_, (start, _)| Some(*start) != record.parent);
        let DescribeRecord {
            tool_name,
            status,
            duration_ms,
            error,
            ..
        } = record.parse_metadata()?;
        let took = format_duration(Duration::from_millis(duration_ms.unwrap_or(0)));
        Ok(match (error, status) {
            (Some(why), _) => {
                format!("{tool_name} could not describe itself ({took}): {why}")
            }
            (None, Some(Status::Ok)) => format!("{tool_name} described itself ({took})"),
            (None, status) => {
                let status =
                    status.map_or_else(|| "unknown".to_owned(), |status| status.to_string());
                format!("{tool_name} did not describe itself ({took}): {status}")
            }
        })
    }

    /// Removes the tools without a recorded end and returns a text that names them, if any.
    pub fn take_unanswered(&mut self) -> Option<String> {
        let pending = std::mem::take(&mut self.0).into_values();
        let names: Vec<String> = pending.map(|(_, name)| name).collect();
        (!names.is_empty()).then(|| {
            let names = names.join(", ");
            format!("describing {names}: no result recorded")
        })
    }
}
