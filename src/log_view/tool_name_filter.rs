//! Checks that tools named on the command line occur in the logs.

use std::borrow::Cow;
use std::collections::BTreeSet;

use serde::Deserialize;

use toolq_core::text::suggest_name;
use toolq_log::{Corruption, Record, RecordKind};

/// Maximum number of names that are kept for suggestions.
const MAX_OTHER_NAMES: usize = 1_000;

/// Finds which of the wanted tools have no calls in the records, and what they might be called instead.
#[derive(Debug)]
pub struct ToolNameFilter {
    missing: BTreeSet<String>,
    other_names: BTreeSet<String>,
}

#[derive(Deserialize)]
struct ToolNameFields<'a> {
    #[serde(borrow)]
    tool_name: Option<Cow<'a, str>>,
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
        let is_of_call = matches!(record.kind, RecordKind::ToolCall | RecordKind::ToolStart);
        if self.missing.is_empty() || !(is_of_call || record.kind.ends_call()) {
            return Ok(());
        }
        let ToolNameFields { tool_name } = record.parse_metadata()?;
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
