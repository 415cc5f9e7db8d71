//! The line of a call in doubt that a person resolved.

use crate::log_view::preview;
use crate::log_view::text_layout::TextLayout;
use toolq_core::text::escape;
use toolq_log::records::ResolveRecord;

/// Formats the line: `resolved pay call_1: done: paid (checked by hand)`. `content` is the result that the person gave,
/// or why it can't be read.
pub(crate) fn resolution_label(
    resolved: &ResolveRecord<'_>,
    content: Result<String, String>,
    layout: &TextLayout,
) -> String {
    let found = match (resolved.done, content) {
        (true, Ok(result)) => format!("done: {}", preview::content_preview(&result, layout)),
        (true, Err(reason)) => format!("done ({reason})"),
        (false, _) => "not done".to_owned(),
    };
    let note = resolved.note.as_deref();
    let note = note.map_or_else(String::new, |note| format!(" ({note})"));
    let (name, id) = (&resolved.tool_name, &resolved.tool_use_id);
    escape(&format!("resolved {name} {id}: {found}{note}")).into_owned()
}
