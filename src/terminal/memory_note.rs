//! What the memory answered in a run, in one line for people.

use std::path::PathBuf;

use toolq_core::text::{escape, format_count, format_time, truncate_to_columns};
use toolq_core::types::{CallRef, ResultSource};

/// How many calls the note names.
const MAX_NAMED_CALLS: usize = 3;
/// Maximum width of the name of a call, in columns.
const MAX_COLUMNS: usize = 60;

/// The calls that the memory answered.
#[derive(Debug, Default)]
pub(super) struct MemoryNote {
    count: usize,
    named: Vec<String>,
    /// When the first of them ran, and the log that says so.
    first: Option<(u64, PathBuf)>,
    /// Whether one of them is known by its values: it runs once, whatever its id.
    has_once: bool,
}

impl MemoryNote {
    /// Adds a call.
    pub(super) fn add(&mut self, call: &CallRef, source: Option<&ResultSource>) {
        self.count += 1;
        self.has_once |= source.is_some_and(|source| source.other_id.is_some());
        if self.named.len() < MAX_NAMED_CALLS {
            let name = format!("{} {}", call.tool_name, call.tool_use_id);
            let name = truncate_to_columns(&name, MAX_COLUMNS);
            self.named.push(escape(&name).into_owned());
        }
        if let (None, Some(source)) = (&self.first, source) {
            self.first = Some((source.ended_ms, source.log.clone()));
        }
    }

    /// Returns how many calls there are.
    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// Whether it may be said how they run again.
    pub(super) fn may_be_renewed(&self) -> bool {
        !self.has_once
    }

    /// Formats the note: `2 calls from memory: pay toolu_1, pay toolu_2, the first of them ran 2026-01-01 12:03:00 UTC (LOG)`.
    pub(super) fn text(&self) -> Option<String> {
        let more = match self.count - self.named.len() {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let ran = self.first.as_ref().map(|(ended_ms, log)| {
            let which = if self.count == 1 {
                ""
            } else {
                "the first of them "
            };
            let time = format_time(*ended_ms);
            format!(", {which}ran {time} ({})", log.display())
        });
        let calls = format_count(self.count as u64, "call");
        let named = self.named.join(", ");
        let ran = ran.unwrap_or_default();
        (self.count > 0).then(|| format!("{calls} from memory: {named}{more}{ran}"))
    }
}
