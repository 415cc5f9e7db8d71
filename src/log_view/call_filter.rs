//! The filters of `toolq log show`.

use toolq_log::records::{CallContent, ModelResponseRecord, ProbeRecord};
use toolq_log::{CallEvent, Corruption, Record, RecordKind};

/// Selects the calls to show.
#[derive(Debug, Clone, Default)]
pub struct CallFilter {
    /// Select only calls that failed, did not run, or have no result.
    pub errors_only: bool,
    /// Select only calls of these tools; empty selects all.
    pub tools: Vec<String>,
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
        let tool = match &record.kind {
            RecordKind::ToolCall => {
                let call = content.and_then(|json| serde_json::from_str(json).ok());
                let is_match = |call: CallContent<'_>| self.matches_call(&call.name, false);
                return Ok(call.is_some_and(is_match));
            }
            RecordKind::ModelResponse => {
                let response: ModelResponseRecord<'_> = record.parse_metadata()?;
                response.tool_name
            }
            RecordKind::ProbeStart => {
                let probe: ProbeRecord<'_> = record.parse_metadata()?;
                probe.tool_name
            }
            _ => {
                let Some(event) = CallEvent::from_record(record)? else {
                    return Ok(false);
                };
                return Ok(self.matches_call(event.tool_name(), event.is_error()));
            }
        };
        Ok(self.matches_call(&tool, false))
    }
}
