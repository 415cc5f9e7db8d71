//! The thread that waits for the disk, so that nothing else has to.

use std::collections::HashMap;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, mpsc};

use serde_json::value::RawValue;
use uuid::Uuid;

use crate::memory::{Claim, ClaimsDir, EntryName, Made, Question};
use crate::write::journal::{DetachedRecord, Place, SharedJournal};
use toolq_core::os::sync_parent;
use toolq_core::types::{CommitDone, EmitError};

/// How many offsets of records are kept. One that is lost only makes a log be read from its beginning.
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
        let bytes = self.journal.whole_bytes();
        if self.synced_bytes == Some(bytes) {
            return Ok(());
        }
        let synced = self.journal.storage().sync().and_then(|()| {
            match self.synced_bytes {
                Some(_) => Ok(()),
                // The name of a new log has to survive, too.
                None => sync_parent(self.journal.path()),
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
