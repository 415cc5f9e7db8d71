use std::collections::HashMap;
use std::sync::Arc;

use uuid::Uuid;

use crate::log_view::call_view::{CallView, Ended};

/// Calls that are shown when the log is over, in the order in which they ended: until then a later run may go on with
/// them, or somebody say what became of them. Each has the title of its session.
#[derive(Debug, Default)]
pub(crate) struct Late {
    calls: Vec<Option<(Option<Arc<str>>, CallView)>>,
    /// Where each of them stands.
    places: HashMap<Uuid, usize>,
}

impl Late {
    pub(super) fn add(&mut self, title: Option<Arc<str>>, call: CallView) {
        self.places.insert(call.record, self.calls.len());
        self.calls.push(Some((title, call)));
    }

    /// Takes out a call that somebody goes on with.
    pub(super) fn take(&mut self, record: Uuid) -> Option<CallView> {
        let place = self.places.remove(&record)?;
        let (_, call) = self.calls.get_mut(place)?.take()?;
        Some(call)
    }

    /// Somebody said what became of a call.
    pub(super) fn end(&mut self, record: Option<Uuid>, ended: Ended) {
        let place = record.and_then(|record| self.places.get(&record));
        let held = place.and_then(|place| self.calls.get_mut(*place));
        if let Some(Some((_, call))) = held {
            call.end(ended);
        }
    }

    /// Those that nobody went on with.
    pub(super) fn into_calls(self) -> impl Iterator<Item = (Option<Arc<str>>, CallView)> {
        self.calls.into_iter().flatten()
    }
}
