//! Removes a session that nobody needs any more: the log with all that stands beside it. It is locked meanwhile, so that
//! no run can go on with it.

use std::ffi::OsStr;
use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use crate::error::LogError;
use crate::open::folder_of;
use crate::open::lock;
use crate::read::Records;
use crate::resume::Doubts;
use crate::stale_blobs;

/// What is removed.
#[derive(Debug, Clone, Copy)]
pub struct Prune {
    /// Sessions that were written later are left: milliseconds since 1970.
    pub before: u64,
    /// Those without an end are removed, too.
    pub unfinished: bool,
    /// Nothing is removed, and all else is as if it were.
    pub dry_run: bool,
}

/// What became of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pruned {
    /// It is gone.
    Removed {
        /// When it was written last: milliseconds since 1970.
        written: u64,
        /// How many bytes it took, with all that stood beside it.
        bytes: u64,
    },
    /// It was written too lately.
    Young,
    /// It has no end: its run can be resumed.
    Unfinished,
    /// A call of it is in doubt, and no other file says that it may have done its work.
    InDoubt,
    /// A run writes it.
    InUse,
    /// What was left of it holds files that toolq doesn't make.
    Foreign,
}

impl Prune {
    /// Removes the session of `log`, if it is one of these. `torn` are the files of this folder that torn ends were
    /// copied to.
    ///
    /// # Errors
    /// It can't be read or removed, or is damaged: then it is left as it is.
    pub fn session(&self, log: &Path, torn: &[PathBuf]) -> Result<Pruned, LogError> {
        let io = |doing| {
            move |source| LogError::Io {
                path: log.to_owned(),
                doing,
                source,
            }
        };
        let opened = lock::open_own(log)?;
        // Most are young, and are told by this alone.
        let changed = stale_blobs::changed(&opened.metadata().map_err(io("read"))?);
        if changed >= self.before {
            return Ok(Pruned::Young);
        }
        match opened.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Ok(Pruned::InUse),
            Err(TryLockError::Error(error)) => return Err(io("locked")(error)),
        }
        let lock = opened.try_clone().map_err(io("read"))?;
        let last = Last::of(log, opened)?;
        let written = last.timestamp.max(changed);
        if written >= self.before {
            return Ok(Pruned::Young);
        }
        match &last {
            _ if self.unfinished => {}
            last if last.is_open => return Ok(Pruned::Unfinished),
            last if last.doubts.any() => return Ok(Pruned::InDoubt),
            _ => {}
        }
        let torn = torn.iter().filter(|torn| is_torn_of(torn, log));
        let removed = self.remove(log, torn).map_err(io("removed"))?;
        drop(lock);
        Ok(removed.map_or(Pruned::Foreign, |bytes| Pruned::Removed { written, bytes }))
    }

    /// Removes what stands beside a log, then the log: what is left of a removal that broke off is still a log, and is
    /// removed by the next. Returns how many bytes all took; none, and all is left, where toolq did not make all of it.
    fn remove<'t>(
        &self,
        log: &'t Path,
        torn: impl Iterator<Item = &'t PathBuf>,
    ) -> io::Result<Option<u64>> {
        let bodies = folder_of(log);
        let mut bytes = 0;
        if fs::symlink_metadata(&bodies).is_ok_and(|found| found.is_dir()) {
            let Some(found) = stale_blobs::bodies(&bodies)? else {
                return Ok(None);
            };
            bytes += found.iter().map(|(_, body)| body.len()).sum::<u64>();
            if !self.dry_run {
                stale_blobs::remove(&bodies, &found)?;
            }
        }
        for file in torn.map(PathBuf::as_path).chain([log]) {
            bytes += fs::symlink_metadata(file)?.len();
            if !self.dry_run {
                fs::remove_file(file)?;
            }
        }
        Ok(Some(bytes))
    }
}

/// The end of a log.
struct Last {
    timestamp: u64,
    is_open: bool,
    doubts: Doubts,
}

impl Last {
    /// The latest time of all records, for clocks may go backwards, what the last one is, and what is in doubt. An end that is torn is none.
    fn of(path: &Path, log: File) -> Result<Self, LogError> {
        let mut last = Self {
            timestamp: 0,
            is_open: true,
            doubts: Doubts::default(),
        };
        for record in Records::of(log) {
            match record {
                Ok(record) => {
                    last.timestamp = last.timestamp.max(record.timestamp);
                    last.is_open = record.kind.leaves_open(last.is_open);
                    last.doubts.take(&record);
                }
                Err(damage) if damage.is_torn() => last.is_open = true,
                Err(damage) => return Err(LogError::of(path, damage)),
            }
        }
        Ok(last)
    }
}

/// Whether the end of `log` was copied to `torn` once: `LOG.torn-SEQ`.
fn is_torn_of(torn: &Path, log: &Path) -> bool {
    let name = |path: &Path| {
        path.file_name()
            .unwrap_or(OsStr::new(""))
            .as_encoded_bytes()
            .to_vec()
    };
    let (torn, log) = (name(torn), name(log));
    let rest = torn.strip_prefix(log.as_slice());
    rest.is_some_and(|rest| rest.starts_with(b".torn-"))
}
