//! Formats the records of tools files that were read again.

use toolq_core::text::format_count;
use toolq_log::records::ToolsChangeRecord;

/// Formats a `tools_change`: `tools.yaml was read again: 1 tool added, 0 removed, 2 changed`.
pub(crate) fn tools_change_label(change: &ToolsChangeRecord) -> String {
    format!(
        "{} was read again: {} added, {} removed, {} changed",
        change.tools.path,
        format_count(change.added as u64, "tool"),
        change.removed,
        change.changed
    )
}
