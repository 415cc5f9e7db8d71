//! Checks that tools named on the command line occur in the logs.

use std::borrow::Cow;
use std::collections::BTreeSet;

use toolq_core::text::suggest_name;
use toolq_log::records::CallRecord;
use toolq_log::{CallEvent, Corruption, Record, RecordKind};

/// Maximum number of names that are kept for suggestions.
const MAX_OTHER_NAMES: usize = 1_000;

/// Finds which of the wanted tools have no calls in the records, and what they might be called instead.
#[derive(Debug)]
pub struct ToolNameFilter {
    missing: BTreeSet<String>,
    other_names: BTreeSet<String>,
}

impl ToolNameFilter {
    /// Creates a filter that looks for `wanted`.
    pub fn new(wanted: &[String]) -> Self {
        Self {
            missing: wanted.iter().cloned().collect(),
            other_names: BTreeSet::new(),
        }
    }

    /// Adds the next record.
    ///
    /// # Errors
    /// The record's metadata doesn't match its type.
    pub fn add_record(&mut self, record: &Record) -> Result<(), Corruption> {
        if self.missing.is_empty() {
            return Ok(());
        }
        let tool_name = match &record.kind {
            RecordKind::ToolCall => Some(record.parse_metadata::<CallRecord<'_>>()?.tool_name),
            _ => CallEvent::from_record(record)?
                .map(|event| Cow::Owned(event.tool_name().to_owned())),
        };
        if let Some(name) = tool_name {
            self.missing.remove(&*name);
            if self.other_names.len() < MAX_OTHER_NAMES && !self.other_names.contains(&*name) {
                self.other_names.insert(name.into_owned());
            }
        }
        Ok(())
    }

    /// Returns the wanted tools without a call, each with the name that was probably meant.
    pub fn missing(&self) -> impl Iterator<Item = (&str, Option<&str>)> {
        let others = || self.other_names.iter().map(String::as_str);
        let missing = self.missing.iter();
        missing.map(move |name| (&**name, suggest_name(name, others())))
    }
}
