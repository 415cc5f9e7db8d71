//! The memory for who runs nothing: a plan asks what it says of calls, and leaves it as it is.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::error::LogError;
use crate::memory::identity::{Identity, Remembered};
use crate::memory::place::{MemoryUse, RememberedIn};
use crate::memory::store::MemoryStore;
use redact::Mask;
use toolq_core::os::Clock;
use toolq_core::types::{
    CallHistory, CallRef, EarlierRun, EmitError, RecalledCall, Recollection, RestoredResult,
};

/// What the memory says of calls, as a run that begins now would find it.
pub struct RecordedHistory {
    store: MemoryStore,
    mask: Arc<Mask>,
    clock: Clock,
}

impl RecordedHistory {
    /// Reads the memory at `place`, which is the log at `log` if a log is its own memory. `root` is the directory in which the calls
    /// would run. `None` if nothing is there.
    ///
    /// # Errors
    /// The named log can't be read.
    pub fn open(
        (place, log): (RememberedIn, &Path),
        usage: MemoryUse,
        root: PathBuf,
        mask: Arc<Mask>,
        clock: Clock,
    ) -> Result<Option<Self>, LogError> {
        let is_there = match &place {
            RememberedIn::State { claims, .. } => claims.exists(),
            RememberedIn::Log { .. } => log.exists(),
        };
        if !is_there {
            return Ok(None);
        }
        let store = MemoryStore::for_people(place, log).for_calls(usage, root)?;
        Ok(Some(Self { store, mask, clock }))
    }

    fn identify(&self, request: &RecalledCall<'_>) -> Option<Identity> {
        let RecalledCall {
            call,
            accepted,
            origin,
        } = *request;
        let (root, remembered) = (&self.store.root, self.store.usage.remembered);
        Identity::of(call, accepted, (root, origin), None, remembered)
    }
}

impl CallHistory for RecordedHistory {
    fn recall(&self, request: &RecalledCall<'_>) -> Result<Recollection, EmitError> {
        let Some(identity) = self.identify(request) else {
            return Ok(Recollection::FORGETTABLE);
        };
        let now = self.clock.now_ms();
        let recalled = self.store.recall(request, &identity, &self.mask, now);
        recalled.map_err(|error| error.of_memory())
    }

    fn find_run(&self, request: &RecalledCall<'_>) -> Result<Option<EarlierRun>, EmitError> {
        let Some(identity) = self.identify(request) else {
            return Ok(None);
        };
        let now = self.clock.now_ms();
        let found = self.store.find_run(request, &identity, &self.mask, now);
        found.map_err(|error| error.of_memory())
    }

    fn recall_read(
        &self,
        request: &RecalledCall<'_>,
        run: Option<&EarlierRun>,
    ) -> Result<Option<RestoredResult>, EmitError> {
        let identity = self.identify(request);
        let call = CallRef::new(request.call, None).key();
        let is_new = self.store.runs_again(&request.call.id);
        let Some(identity) = identity.filter(|_| !is_new) else {
            return Ok(None);
        };
        let recalled = self.store.recall_read(&call, &identity, run);
        recalled.map_err(|error| error.of_memory())
    }

    fn resumes_reads(&self) -> bool {
        self.store.unfinished_session().is_some()
    }

    fn remembers_ids(&self) -> bool {
        self.store.usage.remembered == Remembered::ById
    }

    fn is_at_hand(&self) -> bool {
        self.store.is_at_hand()
    }
}

impl fmt::Debug for RecordedHistory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RecordedHistory")
            .field(&self.store.entries_dir())
            .finish()
    }
}
