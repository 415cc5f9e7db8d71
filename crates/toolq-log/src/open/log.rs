//! A log is opened to be continued: locked, and verified from its first record to its last. Nothing is written before
//! somebody decides to; then a torn end is set aside first.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::error::LogError;
use crate::open::lock;
use crate::open::recover;
use crate::open::recover::{RecoveredFields, Torn};
use crate::read::{Damage, Records};
use crate::records::{Chain, Record};
use crate::resume::History;
use crate::write::{Disk, Journal, LogFile, Session, SessionLog, doubtful, sync_folder};
use redact::Mask;
use toolq_core::os::Clock;

/// A log that nobody else can write now, and whose records are all whole.
pub struct Log {
    path: PathBuf,
    file: File,
    chain: Chain,
    /// Bytes of whole records.
    len: u64,
    torn: Option<Torn>,
    /// The last run has no end.
    unfinished: bool,
}

impl Log {
    /// Opens the log at `path`, or makes an empty one; its folder must exist. Each record is shown to `visit`, with
    /// where it ends in the file; it may be refused there. Nothing is written.
    ///
    /// # Errors
    /// It can't be a log, somebody else uses it, it is damaged or newer than this toolq. It is untouched then.
    pub fn open(
        path: &Path,
        mut visit: impl FnMut(&Record, u64) -> Result<(), Damage>,
    ) -> Result<Self, LogError> {
        let file = lock::claim(path)?;
        let mut records = Records::of(file.try_clone().map_err(|source| reading(path, source))?);
        let (mut unfinished, mut torn) = (false, None);
        while let Some(record) = records.lend() {
            match record {
                Ok(record) => {
                    unfinished = record.kind.leaves_open(unfinished);
                    visit(&record, record.end).map_err(|damage| LogError::of(path, damage))?;
                }
                Err(damage) => {
                    let end = Torn::of(damage).map_err(|damage| LogError::of(path, damage))?;
                    torn = Some(end);
                }
            }
        }
        if let Some((major, minor)) = records.newer() {
            let path = path.to_owned();
            return Err(LogError::Newer { path, major, minor });
        }
        Ok(Self {
            path: path.to_owned(),
            chain: records.end().clone(),
            len: records.offset(),
            file,
            torn,
            unfinished,
        })
    }

    /// The same at a place of toolq's own choice (see [`super::default_path`]), whose folders are made.
    ///
    /// # Errors
    /// Those of [`Self::open`].
    pub fn open_default(
        path: &Path,
        visit: impl FnMut(&Record, u64) -> Result<(), Damage>,
    ) -> Result<Self, LogError> {
        lock::make_folder(path)?;
        Self::open(path, visit)
    }

    /// Whether it has no record yet.
    pub fn is_new(&self) -> bool {
        self.chain.seq == 0
    }

    /// Whether its last run has no end: toolq was killed in it.
    pub fn is_unfinished(&self) -> bool {
        self.unfinished
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What may keep the promises of a log from being kept, in words for people.
    pub fn warning(&self) -> Option<String> {
        let system = doubtful(&self.path)?;
        let path = self.path.display();
        Some(format!(
            "the session log {path} is on {system}, which may forget after a crash what it was told to keep"
        ))
    }

    /// A second descriptor of the file, to read it by.
    pub(crate) fn file(&self) -> Result<File, LogError> {
        let file = self.file.try_clone();
        file.map_err(|source| reading(&self.path, source))
    }

    /// Begins a session behind what is there, with what is known of the task that it resumes, after a torn end was set aside.
    ///
    /// # Errors
    /// It can't be written.
    pub fn begin(
        self,
        session: &Session,
        earlier: Option<Arc<History>>,
        mask: Arc<Mask>,
        clock: Clock,
    ) -> Result<SessionLog, LogError> {
        let path = self.path.clone();
        let begun = if self.is_new() {
            let (journal, aside) = self.set_aside(clock)?;
            begin_new(journal, aside, session, mask)
        } else {
            let (journal, aside) = self.journal(clock)?;
            SessionLog::begin(journal, session, earlier, mask).map(|log| log.behind(aside))
        };
        begun.map_err(|source| writing(&path, source))
    }

    /// What adds records behind what is there, after a torn end was set aside, and what was.
    pub(crate) fn journal(self, clock: Clock) -> Result<(Journal, Vec<RecoveredFields>), LogError> {
        let (mut journal, aside) = self.set_aside(clock)?;
        let noted = recover::note(&mut journal, &aside);
        noted.map_err(|source| writing(journal.path(), source))?;
        Ok((journal, aside))
    }

    fn set_aside(self, clock: Clock) -> Result<(Journal, Vec<RecoveredFields>), LogError> {
        let Self {
            path,
            file,
            chain,
            len,
            torn,
            ..
        } = self;
        let aside = recover::set_aside(&path, &file, (chain.seq, len), torn.as_ref());
        let aside = aside.map_err(|source| writing(&path, source))?;
        let file = LogFile::new(Disk::new(file, &path), len);
        Ok((Journal::new(path, file, chain, clock), aside))
    }
}

/// The first record of a log is a session, also where a torn one stood in its place.
fn begin_new(
    journal: Journal,
    aside: Vec<RecoveredFields>,
    session: &Session,
    mask: Arc<Mask>,
) -> io::Result<SessionLog> {
    let mut log = SessionLog::begin(journal, session, None, mask)?;
    recover::note(&mut log.journal, &aside)?;
    sync_folder(log.path().parent().unwrap_or(log.path()))?;
    Ok(log.behind(aside))
}

fn reading(path: &Path, source: io::Error) -> LogError {
    LogError::Io {
        path: path.to_owned(),
        doing: "read",
        source,
    }
}

fn writing(path: &Path, source: io::Error) -> LogError {
    LogError::Io {
        path: path.to_owned(),
        doing: "written",
        source,
    }
}
