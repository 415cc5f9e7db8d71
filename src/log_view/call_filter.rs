//! The filters of `toolq log show`.

use std::borrow::Cow;

use serde::Deserialize;

use toolq_log::{Corruption, Record, RecordKind};

/// Selects the calls to show.
#[derive(Debug, Clone, Default)]
pub struct CallFilter {
    /// Select only calls that failed, did not run, or have no result.
    pub errors_only: bool,
    /// Select only calls of these tools; empty selects all.
    pub tools: Vec<String>,
}

#[derive(Deserialize)]
struct EndFilterFields<'a> {
    #[serde(borrow)]
    tool_name: Cow<'a, str>,
    is_error: bool,
}

/// The fields of a record that belongs to a call but doesn't end it.
#[derive(Deserialize)]
struct CallRecordFields<'a> {
    #[serde(borrow)]
    tool_name: Cow<'a, str>,
    /// Only in a `resolve` record.
    #[serde(default)]
    is_error: bool,
}

#[derive(Deserialize)]
struct CallNameFields<'a> {
    #[serde(borrow, alias = "tool_name")]
    name: Cow<'a, str>,
}

impl CallFilter {
    /// Returns whether every call is selected.
    pub fn matches_all(&self) -> bool {
        !self.errors_only && self.tools.is_empty()
    }

    pub(super) fn matches_call(&self, tool: &str, is_error: bool) -> bool {
        let named = self.tools.is_empty() || self.tools.iter().any(|name| name == tool);
        named && (is_error || !self.errors_only)
    }

    /// Returns whether the JSON output includes this record. `content` is its content, if available. With
    /// `errors_only`, the earlier records of a call aren't included, because they don't say how it ends.
    ///
    /// # Errors
    /// The record's metadata doesn't match its type.
    pub fn matches_record(
        &self,
        record: &Record,
        content: Option<&str>,
    ) -> Result<bool, Corruption> {
        if self.matches_all() {
            return Ok(true);
        }
        Ok(match &record.kind {
            RecordKind::ToolCall => {
                let call = content.and_then(|json| serde_json::from_str(json).ok());
                call.is_some_and(|call: CallNameFields<'_>| self.matches_call(&call.name, false))
            }
            RecordKind::ToolStart => {
                let start: CallNameFields<'_> = record.parse_metadata()?;
                self.matches_call(&start.name, false)
            }
            kind if kind.ends_call() => {
                let end: EndFilterFields<'_> = record.parse_metadata()?;
                self.matches_call(&end.tool_name, end.is_error)
            }
            RecordKind::Resolve
            | RecordKind::ProbeStart
            | RecordKind::ProbeEnd
            | RecordKind::ModelResponse => {
                let of: CallRecordFields<'_> = record.parse_metadata()?;
                self.matches_call(&of.tool_name, of.is_error)
            }
            _ => false,
        })
    }
}
