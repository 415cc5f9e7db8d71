//! The lines with results that may answer later calls, a limited number of them.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use crate::read::LineExtent;
use toolq_core::schedule::CallAccess;
use toolq_core::types::CallLocks;

/// How many results are remembered. Those that were taken first are forgotten first.
pub(super) const MAX_RESULTS: usize = 10_000;

/// A line with a result.
#[derive(Debug)]
pub(super) struct KeptLine {
    pub(super) extent: LineExtent,
    /// Identifies the call.
    pub(super) digest: Arc<str>,
    pub(super) tool_use_id: String,
    pub(super) timestamp_ms: u64,
    pub(super) locks: Option<CallLocks>,
}

impl KeptLine {
    pub(super) fn access(&self) -> CallAccess {
        CallAccess {
            safe: true,
            locks: self.locks.clone(),
        }
    }
}

/// The latest line of each call.
#[derive(Debug, Default)]
pub(super) struct KeptLines {
    /// By their offset in the file, so that the oldest one comes first.
    lines: BTreeMap<u64, KeptLine>,
    /// The offset of the line with this digest.
    offsets: HashMap<Arc<str>, u64>,
}

impl KeptLines {
    /// Adds a line in place of the earlier one of its call. If there are too many, the oldest one is removed.
    pub(super) fn insert(&mut self, line: KeptLine) {
        let offset = line.extent.offset;
        if let Some(earlier) = self.offsets.insert(Arc::clone(&line.digest), offset) {
            self.lines.remove(&earlier);
        }
        self.lines.insert(offset, line);
        if self.lines.len() > MAX_RESULTS
            && let Some((_, oldest)) = self.lines.pop_first()
        {
            self.offsets.remove(&oldest.digest);
        }
    }

    /// Removes the lines with results that a call may change.
    pub(super) fn remove_changed(&mut self, change: &CallAccess) {
        self.lines
            .retain(|_, line| !change.may_change(&line.access()));
        self.offsets
            .retain(|_, offset| self.lines.contains_key(offset));
    }

    pub(super) fn clear(&mut self) {
        self.lines.clear();
        self.offsets.clear();
    }

    pub(super) fn get(&self, digest: &str) -> Option<&KeptLine> {
        self.lines.get(self.offsets.get(digest)?)
    }

    /// Returns the lines, the oldest one first.
    pub(super) fn iter(&self) -> impl Iterator<Item = &KeptLine> {
        self.lines.values()
    }
}
