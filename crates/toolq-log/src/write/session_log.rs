//! The log of a running session.

use std::collections::HashMap;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, mpsc};

use parking_lot::{Mutex, MutexGuard};
use serde::Serialize;
use uuid::Uuid;

use crate::memory::{Identity, LogIndex, MemoryStore, MemoryUse, RememberedIn};
use crate::records::{FailedAttempt, RecordKind, RecoveredRecord, SessionEndRecord, SessionRecord};
use crate::write::journal::{Journal, Place, SharedJournal};
use redact::Mask;
use toolq_core::types::{CallKey, CallRef, EmitError, TurnOrigin};

/// The log of one session, and the memory that it belongs to. When [`EventSink::emit`] returns, the records of the events, and of
/// all earlier ones, are in the file, or on their way there if they are large. Clones write the same log.
///
/// [`EventSink::emit`]: toolq_core::types::EventSink::emit
#[derive(Clone, derive_more::Debug)]
#[debug("SessionLog({:?})", self.path())]
pub struct SessionLog(Arc<OpenLog>);

struct OpenLog {
    recorder: Mutex<Recorder>,
    memory: MemoryStore,
    journal: Arc<SharedJournal>,
    session_id: Uuid,
    /// Torn ends that were set aside when the log was opened.
    recovered: Vec<RecoveredRecord>,
    /// Holds the lock of the log, as all its copies do. `None` if nothing is locked.
    lock: Option<Arc<OwnedFd>>,
}

/// What writes the records of a session.
pub(crate) struct Recorder {
    pub(crate) journal: Journal,
    pub(crate) mask: Arc<Mask>,
    /// The `session` record.
    pub(crate) session_id: Uuid,
    /// The records of turns that haven't ended.
    pub(crate) open_turns: HashMap<(usize, Option<Arc<CallRef>>), OpenTurn>,
    pub(crate) open_calls: HashMap<CallKey, OpenCall>,
    /// The `describe_start`, `list_start` and `server_start` records without an end, each by the name of its tool or server and the
    /// number of earlier starts.
    pub(crate) open_starts: HashMap<(RecordKind, String, u32), Uuid>,
    pub(crate) counts: SessionEndRecord,
    /// When the session began, in milliseconds since 1970.
    started_ms: u64,
}

/// A turn that hasn't ended.
pub(crate) struct OpenTurn {
    pub(crate) record_id: Uuid,
    /// Where it comes from, which says which calls its calls are.
    pub(crate) origin: TurnOrigin,
    /// Its record took a detour, so those of its calls do, too.
    pub(crate) detour: bool,
}

/// A call that has no result yet.
pub(crate) struct OpenCall {
    /// Its `tool_call` record.
    pub(crate) record_id: Uuid,
    pub(crate) place: Place,
    /// Its last `tool_start` record.
    pub(crate) start: Option<Place>,
    /// What names it in the memory.
    pub(crate) identity: Option<Identity>,
    /// The last failed attempt, which goes into the record of the next start.
    pub(crate) failed_attempt: Option<FailedAttempt>,
}

impl OpenCall {
    /// Whether a record of it took a detour, so that those that follow must, too.
    pub(crate) fn takes_detour(&self) -> bool {
        let places = [Some(self.place), self.start];
        places
            .iter()
            .flatten()
            .any(|place| matches!(place, Place::WithKeeper(_)))
    }
}

impl SessionLog {
    /// Writes the `session` record. `recovered` are the torn ends that were set aside before, `lock` holds the lock of the log.
    pub(crate) fn begin(
        journal: Journal,
        mut session: SessionRecord,
        memory: (RememberedIn, MemoryUse),
        mask: Arc<Mask>,
        index: LogIndex,
        (recovered, lock): (Vec<RecoveredRecord>, Option<OwnedFd>),
    ) -> io::Result<Self> {
        let shared = Arc::clone(&journal.shared);
        let (started_ms, clock) = (shared.clock.now_ms(), shared.clock.clone());
        let root = PathBuf::from(session.root.as_deref().unwrap_or_default());
        session.mask(&mask);
        let (session_id, _) = journal.append(RecordKind::Session, None, (&(), &session), false)?;
        shared.write()?;
        let recorder = Recorder {
            journal,
            mask: Arc::clone(&mask),
            session_id,
            open_turns: HashMap::new(),
            open_calls: HashMap::new(),
            open_starts: HashMap::new(),
            counts: SessionEndRecord::default(),
            started_ms,
        };
        Ok(Self(Arc::new(OpenLog {
            recorder: Mutex::new(recorder),
            memory: MemoryStore::new(memory, root, (mask, clock), &shared.path, session_id, index),
            journal: shared,
            session_id,
            recovered,
            lock: lock.map(Arc::new),
        })))
    }

    pub(crate) fn recorder(&self) -> MutexGuard<'_, Recorder> {
        self.0.recorder.lock()
    }

    pub(crate) fn memory(&self) -> &MemoryStore {
        &self.0.memory
    }

    pub(crate) fn mask(&self) -> &Arc<Mask> {
        &self.0.memory.mask
    }

    /// Writes the `session_end` record, and waits until everything is durable.
    ///
    /// # Errors
    /// The record can't be written.
    pub fn finish(&self, exit_code: u8) -> Result<(), EmitError> {
        let (recorder, journal) = (self.recorder(), &self.0.journal);
        // What took a detour comes before the end.
        recorder.journal.sync()?;
        let end = SessionEndRecord {
            duration_ms: (journal.clock.now_ms()).saturating_sub(recorder.started_ms),
            exit_code,
            ..recorder.counts
        };
        let session = Some(recorder.session_id);
        recorder.journal.guard(|| {
            journal.check_file()?;
            recorder
                .journal
                .append(RecordKind::SessionEnd, session, (&(), &end), false)?;
            journal.write()
        })?;
        recorder.journal.sync()
    }

    /// Requests that everything that was recorded so far becomes durable. Returns what blocks until it is, or can't be.
    pub fn wait_until_durable(&self) -> Box<dyn FnOnce() + Send> {
        let (sender, receiver) = mpsc::channel();
        self.recorder().sync_then(move |_| {
            let _ = sender.send(());
        });
        Box::new(move || {
            let _ = receiver.recv();
        })
    }

    /// Returns whether the file isn't what this session wrote anymore: another process deleted, replaced or changed it.
    pub fn is_lost(&self) -> bool {
        let journal = &self.0.journal;
        journal.failure().is_some() && journal.check_file().is_err()
    }

    /// Removes the file if this session is the only one in it, and nothing has happened in it. Returns whether it did.
    ///
    /// # Errors
    /// The file can't be removed.
    pub fn remove_if_unused(&self) -> io::Result<bool> {
        // Nothing more happens meanwhile.
        let (_recorder, journal) = (self.recorder(), &self.0.journal);
        let is_unused = journal.record_count() == 1 && journal.failure().is_none();
        if is_unused {
            std::fs::remove_file(self.path())?;
        }
        Ok(is_unused)
    }

    /// Returns the id of this session. The idempotency keys of calls that nothing remembers are derived from it.
    pub fn session_id(&self) -> String {
        self.0.session_id.to_string()
    }

    /// Returns the descriptor that holds the lock of the log, if one does. The lock lasts until all its copies are closed.
    pub fn lock(&self) -> Option<Arc<OwnedFd>> {
        self.0.lock.clone()
    }

    /// Returns the path of the log.
    pub fn path(&self) -> &Path {
        &self.0.journal.path
    }

    /// Returns the directory next to the log for content that is too large for a record. It may not exist yet.
    pub fn blob_dir(&self) -> &Path {
        &self.0.journal.blob_dir
    }

    /// Returns the torn ends that were set aside when the log was opened.
    pub fn recovered(&self) -> &[RecoveredRecord] {
        &self.0.recovered
    }

    /// Returns the error after which the log accepts no more records, if there was one.
    pub fn write_error(&self) -> Option<EmitError> {
        self.0.journal.failure().cloned()
    }
}

impl Recorder {
    /// Appends a record below the session. Returns its id.
    pub(crate) fn append_to_session(
        &self,
        kind: RecordKind,
        fields: &impl Serialize,
    ) -> io::Result<Uuid> {
        let (id, _) = self
            .journal
            .append(kind, Some(self.session_id), (&(), fields), false)?;
        Ok(id)
    }

    /// Appends a record below a call. Returns its place.
    pub(crate) fn append_to_call(
        &self,
        kind: RecordKind,
        call: &CallRef,
        (content, fields): (&impl Serialize, &impl Serialize),
    ) -> io::Result<Place> {
        let open = self.open_calls.get(&call.key());
        let parent = open.map(|open| open.record_id);
        let detour = open.is_some_and(OpenCall::takes_detour);
        let (_, place) = self
            .journal
            .append(kind, parent, (content, fields), detour)?;
        Ok(place)
    }

    /// Appends a record below the session that another one ends. `name` and `earlier_starts` say which.
    pub(crate) fn append_start(
        &mut self,
        kind: RecordKind,
        (name, earlier_starts): (&str, u32),
        fields: &impl Serialize,
    ) -> io::Result<()> {
        let start = self.append_to_session(kind.clone(), fields)?;
        self.open_starts
            .insert((kind, name.to_owned(), earlier_starts), start);
        Ok(())
    }

    /// Appends a record that ends another one. Nothing happens if that has an end.
    pub(crate) fn append_end(
        &mut self,
        (start, kind): (RecordKind, RecordKind),
        (name, earlier_starts): (&str, u32),
        (content, fields): (&impl Serialize, &impl Serialize),
    ) -> io::Result<()> {
        let start = (start, name.to_owned(), earlier_starts);
        if let Some(start) = self.open_starts.remove(&start) {
            self.journal
                .append(kind, Some(start), (content, fields), false)?;
        }
        Ok(())
    }
}
