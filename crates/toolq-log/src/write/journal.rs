//! Appends records to a log. What can wait for the disk is done by a thread of its own, the *keeper*: it stores what is too
//! large for a record, makes claims, and syncs. So a slow disk holds up nothing but what depends on it.

use std::collections::HashMap;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, mpsc};
use std::thread::{self, JoinHandle};

use parking_lot::Mutex;
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use uuid::{Builder, Uuid};

use crate::memory::{Claim, ClaimsDir, EntryName, Made, Question};
use crate::records::record::DetachedRecord;
use crate::records::{NewRecord, RecordKind, StoredBlob, blob_dir_for, store_blob};
use crate::write::log_file::{LogFile, Storage};
use toolq_core::os::{Clock, sync_parent};
use toolq_core::types::{CommitDone, EmitError};

/// Appends records to the end of a log. It knows how a record is written, not what it means.
///
/// Appended records are buffered and written together, as many as fit into one write. Nothing is written before
/// [`SharedJournal::write`], unless the buffer is full. After an error, the file must not be written again.
pub(crate) struct Journal {
    pub(crate) shared: Arc<SharedJournal>,
    /// The random part of the next id. It counts from a number of the system, since idempotency keys are derived from the id of a
    /// session: two sessions must never share one.
    next_id: AtomicU64,
    keeper: mpsc::Sender<Job>,
    thread: Option<JoinHandle<()>>,
}

/// What the keeper uses, too.
pub(crate) struct SharedJournal {
    pub(super) path: PathBuf,
    pub(super) clock: Clock,
    /// The directory for content that is too large for a record.
    pub(super) blob_dir: PathBuf,
    storage: Arc<dyn Storage>,
    file: Mutex<LogFile>,
    failure: OnceLock<EmitError>,
}

/// Where a record is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// At this offset in the file.
    At(u64),
    /// The keeper appends it once what it refers to is stored. Records that must come after it take the same way.
    WithKeeper(Uuid),
}

impl Journal {
    /// Creates a journal that continues a log at `path` with a record of this number, after so many bytes of whole records.
    ///
    /// # Errors
    /// The system has no thread for the keeper.
    pub(crate) fn new(
        path: PathBuf,
        storage: Arc<dyn Storage>,
        continued_at: (u64, u64),
        clock: Clock,
    ) -> io::Result<Self> {
        let shared = Arc::new(SharedJournal {
            blob_dir: blob_dir_for(&path),
            path,
            clock,
            file: Mutex::new(LogFile::new(Arc::clone(&storage), continued_at)),
            storage,
            failure: OnceLock::new(),
        });
        let (keeper, jobs) = mpsc::channel();
        let thread = Keeper::new(Arc::clone(&shared), jobs);
        let thread = thread::Builder::new()
            .name("log".to_owned())
            .spawn(move || thread.run())?;
        Ok(Self {
            shared,
            next_id: AtomicU64::new(getrandom::u64().map_err(io::Error::other)?),
            keeper,
            thread: Some(thread),
        })
    }

    /// Appends a record below `parent` and returns its id and its place. With `detour`, it takes the way through the keeper, as the
    /// record did that it must come after. So does content that is too large for a record.
    pub(crate) fn append<C: Serialize, M: Serialize>(
        &self,
        kind: RecordKind,
        parent: Option<Uuid>,
        (content, metadata): (&C, &M),
        detour: bool,
    ) -> io::Result<(Uuid, Place)> {
        let timestamp = self.shared.clock.now_ms();
        let id = self.generate_id(timestamp);
        let mut record = NewRecord {
            seq: 0,
            id,
            parent,
            timestamp,
            kind,
            content,
            metadata,
        };
        if !detour && let Some(offset) = self.shared.file.lock().append(&mut record, false)? {
            return Ok((id, Place::At(offset)));
        }
        self.send(Job::Append(Box::new(record.detach()?)));
        Ok((id, Place::WithKeeper(id)))
    }

    /// Generates a UUID version 7 (RFC 9562, section 6.2, method 2).
    fn generate_id(&self, timestamp: u64) -> Uuid {
        let mut random = [0; 10];
        let count = self.next_id.fetch_add(1, Ordering::Relaxed);
        random[2..].copy_from_slice(&count.to_be_bytes());
        Builder::from_unix_timestamp_millis(timestamp, &random).into_uuid()
    }

    /// Stores a value that metadata has no room for in a file in the blob directory. The record that refers to it takes a detour,
    /// behind this.
    pub(crate) fn store_blob(&self, content: &impl Serialize) -> io::Result<StoredBlob> {
        let content = to_raw_value(content)?;
        let stored = StoredBlob::of(content.get().as_bytes());
        self.send(Job::Store(content));
        Ok(stored)
    }

    /// Hands a job to the keeper.
    pub(crate) fn send(&self, job: Job) {
        // The keeper ends with the journal.
        let _ = self.keeper.send(job);
    }

    /// Blocks until everything appended so far survives a power loss.
    pub(crate) fn sync(&self) -> Result<(), EmitError> {
        let (done, is_done) = mpsc::channel();
        self.send(Job::Sync(Box::new(move |synced| {
            let _ = done.send(synced);
        })));
        let lost = || EmitError("the session log has no writer".to_owned());
        is_done.recv().map_err(|_| lost())?
    }

    /// Runs `write` unless an earlier write failed. Nothing is attempted after the first failure.
    pub(crate) fn guard<T>(&self, write: impl FnOnce() -> io::Result<T>) -> Result<T, EmitError> {
        if let Some(failure) = self.shared.failure() {
            return Err(failure.clone());
        }
        write().map_err(|error| self.shared.fail(&error))
    }
}

impl Drop for Journal {
    fn drop(&mut self) {
        let (keeper, _) = mpsc::channel();
        self.keeper = keeper;
        let thread = self.thread.take();
        // What it has been given is done before the log is closed. It may be the keeper itself that drops the journal.
        if let Some(thread) = thread.filter(|thread| thread.thread().id() != thread::current().id())
        {
            let _ = thread.join();
        }
    }
}

impl SharedJournal {
    /// Returns how many records the file has, with those that aren't written yet.
    pub(super) fn record_count(&self) -> u64 {
        self.file.lock().record_count()
    }

    /// Writes the appended records.
    pub(crate) fn write(&self) -> io::Result<()> {
        self.file.lock().write_pending()
    }

    /// Checks that the file is still in place. This has to be done before a call starts or its result is written, since
    /// afterwards it is too late to find out that the record is in a file that is gone.
    pub(super) fn check_file(&self) -> io::Result<()> {
        self.file.lock().check_unchanged()
    }

    /// Returns the error after which nothing is written any more.
    pub(crate) fn failure(&self) -> Option<&EmitError> {
        self.failure.get()
    }

    /// Stores content in a file of its own.
    pub(crate) fn store_blob(&self, content: &RawValue) -> io::Result<StoredBlob> {
        store_blob(&self.blob_dir, content.get().as_bytes())
    }

    /// Appends a record and writes it. Returns its offset.
    pub(crate) fn append_detached(&self, mut record: DetachedRecord) -> io::Result<u64> {
        let appended = self.file.lock().append(&mut record, false)?;
        let offset = if let Some(offset) = appended {
            offset
        } else {
            let content = to_raw_value(&self.store_blob(&record.content)?)?;
            let mut reference = DetachedRecord { content, ..record };
            let offset = self.file.lock().append(&mut reference, true)?;
            offset.ok_or_else(|| io::Error::other("the metadata of a record is too large"))?
        };
        self.write()?;
        Ok(offset)
    }

    /// Notes an error after which nothing is written any more.
    pub(crate) fn fail(&self, error: &io::Error) -> EmitError {
        let path = self.path.display();
        let failure = EmitError(format!("the session log {path} can't be written: {error}"));
        self.failure.get_or_init(|| failure).clone()
    }
}

// The thread that waits for the disk, so that nothing else has to.

/// How many offsets of records are kept. A question about a call whose offset is lost is shown without its input.
const MAX_OFFSETS: usize = 4096;

/// A claim to be made, and where the record of the start is.
type WantedClaim = (EntryName, Claim, Place);

/// What the keeper does, in the order in which it is told to.
pub(crate) enum Job {
    /// Store this in a file of its own.
    Store(Box<RawValue>),
    /// Append this record, and store its content first if that is too large.
    Append(Box<DetachedRecord>),
    /// Make these claims.
    Claim(PathBuf, Vec<WantedClaim>, CommitDone),
    /// Note in the memory that a call waits for an approval.
    Ask(PathBuf, EntryName, Question, Place),
    /// Sync the log.
    Sync(Box<dyn FnOnce(Result<(), EmitError>) + Send>),
}

pub(crate) struct Keeper {
    journal: Arc<SharedJournal>,
    jobs: mpsc::Receiver<Job>,
    claims: Option<ClaimsDir>,
    /// The offsets of the records that took the way through the keeper, as far as claims refer to them.
    offsets: HashMap<Uuid, u64>,
    /// The size of the log when it was last synced.
    synced_bytes: Option<u64>,
}

impl Keeper {
    pub(crate) fn new(journal: Arc<SharedJournal>, jobs: mpsc::Receiver<Job>) -> Self {
        Self {
            journal,
            jobs,
            claims: None,
            offsets: HashMap::new(),
            synced_bytes: None,
        }
    }

    pub(crate) fn run(mut self) {
        while let Ok(first) = self.jobs.recv() {
            let mut jobs = vec![first];
            jobs.extend(self.jobs.try_iter());
            // Of what has come together, one sync serves all that wait for one.
            let (mut claims, mut syncs) = (Vec::new(), Vec::new());
            for job in jobs {
                match job {
                    Job::Claim(dir, wanted, done) => claims.push((dir, wanted, done)),
                    Job::Sync(done) => syncs.push(done),
                    // What goes wrong is kept in the journal, and said to whoever waits for it.
                    job => drop(self.survive(|keeper| {
                        keeper.write_job(job);
                        Ok(())
                    })),
                }
            }
            self.claim_all(claims);
            if !syncs.is_empty() {
                let synced = self.survive(Self::sync_log);
                for done in syncs {
                    done(synced.clone());
                }
            }
        }
    }

    /// Does something. A panic poisons the log: whoever waits for the keeper is told so, and doesn't wait for ever.
    fn survive<T>(
        &mut self,
        work: impl FnOnce(&mut Self) -> Result<T, EmitError>,
    ) -> Result<T, EmitError> {
        catch_unwind(AssertUnwindSafe(|| work(self))).unwrap_or_else(|_| {
            let panicked = io::Error::other("a panic in toolq itself");
            Err(self.journal.fail(&panicked))
        })
    }

    fn write_job(&mut self, job: Job) {
        match job {
            Job::Store(content) => self.write(|journal| journal.store_blob(&content).map(drop)),
            Job::Append(record) => self.append(*record),
            Job::Ask(dir, name, question, place) => self.ask(&dir, &name, question, place),
            Job::Claim(..) | Job::Sync(_) => {}
        }
    }

    fn write(&self, write: impl FnOnce(&SharedJournal) -> io::Result<()>) {
        if self.journal.failure().is_none()
            && let Err(error) = write(&self.journal)
        {
            self.journal.fail(&error);
        }
    }

    fn append(&mut self, record: DetachedRecord) {
        if self.journal.failure().is_some() {
            return;
        }
        let id = record.id;
        match self.journal.append_detached(record) {
            Ok(offset) => {
                if self.offsets.len() >= MAX_OFFSETS {
                    self.offsets.clear();
                }
                self.offsets.insert(id, offset);
            }
            Err(error) => drop(self.journal.fail(&error)),
        }
    }

    /// Makes claims, and syncs their folder once for all of them. Nothing may start that isn't claimed.
    fn claim_all(&mut self, wanted: Vec<(PathBuf, Vec<WantedClaim>, CommitDone)>) {
        if wanted.is_empty() {
            return;
        }
        let mut made = Vec::new();
        for (dir, claims, done) in wanted {
            made.push((self.survive(|keeper| keeper.claim(&dir, claims)), done));
        }
        let synced = self.survive(|keeper| match (&keeper.claims, keeper.journal.failure()) {
            (_, Some(failure)) => Err(failure.clone()),
            (Some(claims), None) => claims.sync().map_err(|error| memory_error(claims, &error)),
            (None, None) => Ok(()),
        });
        for (claimed, done) in made {
            done(synced.clone().and(claimed));
        }
    }

    /// Returns which of the calls are claimed now.
    fn claim(&mut self, dir: &Path, wanted: Vec<WantedClaim>) -> Result<Vec<bool>, EmitError> {
        let mut are_ours = Vec::new();
        for (name, claim, place) in wanted {
            let offset = self.offset_of(place);
            let claims = self.open_claims(dir)?;
            let claim = Claim { offset, ..claim };
            let made = claims.claim(&name, &claim);
            let made = made.map_err(|error| memory_error(claims, &error))?;
            // One with this very target is ours, even if the system said otherwise.
            are_ours.push(made == Made::New || made == Made::Existed(claim));
        }
        Ok(are_ours)
    }

    fn ask(&mut self, dir: &Path, name: &EntryName, question: Question, place: Place) {
        let offset = self.offset_of(place);
        // If this fails, nobody is asked, and the call waits as it would if nobody answered.
        if let Ok(claims) = self.open_claims(dir) {
            let question = Question { offset, ..question };
            let _ = claims
                .ask(name, &question, false)
                .and_then(|_| claims.sync());
        }
    }

    fn open_claims(&mut self, dir: &Path) -> Result<&ClaimsDir, EmitError> {
        if self.claims.is_none() {
            let opened = ClaimsDir::create(dir);
            let error = |error| {
                EmitError(format!(
                    "the memory {} can't be used: {error}",
                    dir.display()
                ))
            };
            self.claims = Some(opened.map_err(error)?);
        }
        self.claims
            .as_ref()
            .ok_or_else(|| EmitError("the memory is gone".to_owned()))
    }

    fn offset_of(&mut self, place: Place) -> u64 {
        match place {
            Place::At(offset) => offset,
            Place::WithKeeper(record) => self.offsets.remove(&record).unwrap_or_default(),
        }
    }

    fn sync_log(&mut self) -> Result<(), EmitError> {
        if let Some(failure) = self.journal.failure() {
            return Err(failure.clone());
        }
        let written = self.journal.write();
        written.map_err(|error| self.journal.fail(&error))?;
        let bytes = self.journal.file.lock().whole_bytes();
        if self.synced_bytes == Some(bytes) {
            return Ok(());
        }
        let synced = self.journal.storage.sync().and_then(|()| {
            match self.synced_bytes {
                Some(_) => Ok(()),
                // The name of a new log has to survive, too.
                None => sync_parent(&self.journal.path),
            }
        });
        self.synced_bytes = synced.is_ok().then_some(bytes);
        synced.map_err(|error| self.journal.fail(&error))
    }
}

fn memory_error(claims: &ClaimsDir, error: &io::Error) -> EmitError {
    let path = claims.path().display();
    EmitError(format!("the memory {path} can't be written: {error}"))
}
