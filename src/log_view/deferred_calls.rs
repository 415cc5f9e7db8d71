//! Calls whose display waits for the end of the log.

use std::collections::HashMap;
use std::sync::Arc;

use uuid::Uuid;

use crate::log_view::call_view::CallView;
use crate::log_view::preview::OutputPreview;
use toolq_log::CallEvent;

/// Calls that are shown at the end of the log, in the order in which they ended, because until then a later run could
/// continue them or a `resolve` record could settle them. Each has the title of its session.
#[derive(Debug, Default)]
pub(crate) struct DeferredCalls {
    calls: Vec<Option<(Option<Arc<str>>, CallView)>>,
    /// Maps a call's record to its index in `calls`.
    indexes: HashMap<Uuid, usize>,
}

impl DeferredCalls {
    pub(super) fn add(&mut self, title: Option<Arc<str>>, call: CallView) {
        self.indexes.insert(call.record_id, self.calls.len());
        self.calls.push(Some((title, call)));
    }

    /// Removes a call that a later run continues.
    pub(super) fn take(&mut self, record: Uuid) -> Option<CallView> {
        let index = self.indexes.remove(&record)?;
        let (_, call) = self.calls.get_mut(index)?.take()?;
        Some(call)
    }

    /// Applies the record that resolves a call.
    pub(super) fn apply(
        &mut self,
        record: Option<Uuid>,
        event: &CallEvent<'_>,
        output: OutputPreview,
    ) {
        let index = record.and_then(|record| self.indexes.get(&record));
        let entry = index.and_then(|index| self.calls.get_mut(*index));
        if let Some(Some((_, call))) = entry {
            call.apply(event, Some(output));
        }
    }

    /// Returns the remaining calls.
    pub(super) fn into_calls(self) -> impl Iterator<Item = (Option<Arc<str>>, CallView)> {
        self.calls.into_iter().flatten()
    }
}
