//! Tools that were asked what they take, as a person reads it: a line for each, once it answered.

use std::collections::BTreeMap;
use std::time::Duration;

use uuid::Uuid;

use toolq_core::text::format_duration;
use toolq_log::records::metadata;
use toolq_log::{Damage, Record};

/// The tools whose answer is not on record yet, in the order in which they were asked.
#[derive(Debug, Default)]
pub struct Asked(BTreeMap<u64, (Uuid, String)>);

impl Asked {
    /// A tool is asked.
    ///
    /// # Errors
    /// The metadata is not that of its type.
    pub fn start(&mut self, record: &Record) -> Result<(), Damage> {
        let asked: metadata::Asked = record.metadata()?;
        self.0.insert(record.seq, (record.id, asked.tool_name));
        Ok(())
    }

    /// What came of it, in words.
    ///
    /// # Errors
    /// The metadata is not that of its type.
    pub fn end(&mut self, record: &Record) -> Result<String, Damage> {
        self.0.retain(|_, (start, _)| Some(*start) != record.parent);
        let metadata::Asked {
            tool_name,
            status,
            duration_ms,
            error,
        } = record.metadata()?;
        let took = format_duration(Duration::from_millis(duration_ms));
        Ok(match (error, status.as_deref()) {
            (Some(why), _) => {
                format!("{tool_name} could not say in {took} what it takes: {why}")
            }
            (None, Some("ok")) => format!("{tool_name} said in {took} what it takes"),
            (None, status) => {
                let status = status.unwrap_or("unknown");
                format!("{tool_name} was asked what it takes: {status} after {took}")
            }
        })
    }

    /// In words: what nothing came of, as far as the records say.
    pub fn unanswered(&mut self) -> Option<String> {
        let asked = std::mem::take(&mut self.0).into_values();
        let names: Vec<String> = asked.map(|(_, name)| name).collect();
        (!names.is_empty()).then(|| {
            let names = names.join(", ");
            format!("{names} was asked what it takes, and no answer is on record")
        })
    }
}
