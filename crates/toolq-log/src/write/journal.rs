use std::io;
use std::path::{Path, PathBuf};

use serde::Serialize;
use uuid::{Builder, Uuid};

use crate::MAX_RECORD;
use crate::open::folder_of;
use crate::records::line;
use crate::records::{Chain, Head, Kind, Stored};
use crate::write::blob_store::Bodies;
use crate::write::file::LogFile;
use toolq_core::os::Clock;

/// Adds records to the end of a log. Knows how a record is written, not what it says.
///
/// Records that are added together are written together, as far as one write may go; nothing is written before
/// [`Journal::commit`], unless it has no room. After an error the file must not be written again.
pub(crate) struct Journal {
    path: PathBuf,
    file: LogFile,
    bodies: Bodies,
    chain: Chain,
    clock: Clock,
    random: fastrand::Rng,
    /// The line that is being composed; kept for its room.
    line: Vec<u8>,
    /// Whole lines that are to be written.
    pending: Vec<u8>,
    /// Something was written that must survive a loss of power before anybody reads it.
    owed: bool,
}

/// When what was told must survive a loss of power.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Durable {
    /// When the system gets to it.
    Sometime,
    /// Before anybody reads a result.
    BeforeRead,
    /// Now.
    Now,
}

impl Journal {
    /// Continues `file` at `path` behind `chain`.
    pub(crate) fn new(path: PathBuf, file: LogFile, chain: Chain, clock: Clock) -> Self {
        Self {
            bodies: Bodies::new(folder_of(&path)),
            path,
            file,
            chain,
            clock,
            random: fastrand::Rng::new(),
            line: Vec::with_capacity(4 << 10),
            pending: Vec::with_capacity(4 << 10),
            owed: false,
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The folder for what is too large for a record.
    pub(crate) fn folder(&self) -> &Path {
        self.bodies.folder()
    }

    /// Milliseconds since 1970.
    pub(crate) fn now(&self) -> u64 {
        self.clock.ms()
    }

    /// Adds one record below `parent` and returns its id.
    pub(crate) fn add<C: Serialize, M: Serialize>(
        &mut self,
        kind: &Kind,
        parent: Option<Uuid>,
        content: &C,
        metadata: &M,
    ) -> io::Result<Uuid> {
        let timestamp = self.now();
        let id = self.id(timestamp);
        let head = Head {
            seq: self.chain.seq,
            id,
            parent,
            timestamp,
            kind,
            prev: &self.chain.prev,
        };
        compose(&mut self.line, &head, content, metadata, &self.bodies)?;
        if self.pending.len() + self.line.len() > MAX_RECORD {
            self.write()?;
        }
        self.pending.extend_from_slice(&self.line);
        self.chain.push(self.line.trim_ascii_end());
        Ok(id)
    }

    /// Puts a value that has no room in a record into a file of the log's folder.
    pub(crate) fn store(&self, body: &impl Serialize) -> io::Result<Stored> {
        self.bodies.store(body)
    }

    /// Writes what was added, and makes it durable if that is wanted now.
    pub(crate) fn commit(&mut self, durable: Durable) -> io::Result<()> {
        if durable > Durable::Sometime {
            self.look()?;
        }
        self.write()?;
        self.owed |= durable > Durable::Sometime;
        match durable {
            Durable::Now => self.settle(),
            _ => Ok(()),
        }
    }

    /// Makes durable what has to be before anybody reads a result.
    pub(crate) fn settle(&mut self) -> io::Result<()> {
        if self.owed {
            self.file.sync()?;
            self.owed = false;
        }
        Ok(())
    }

    /// Looks whether the file is where it was. Who starts something, or what it did matters to, must not find out afterwards
    /// that its record is in a file that is gone.
    pub(crate) fn look(&mut self) -> io::Result<()> {
        self.file.check()
    }

    fn write(&mut self) -> io::Result<()> {
        if !self.pending.is_empty() {
            self.file.append(&self.pending)?;
            self.pending.clear();
        }
        Ok(())
    }

    /// A UUID of version 7 (RFC 9562).
    fn id(&mut self, timestamp: u64) -> Uuid {
        let mut random = [0; 10];
        self.random.fill(&mut random);
        Builder::from_unix_timestamp_millis(timestamp, &random).into_uuid()
    }
}

/// The beginning of a line's content that names a file. What somebody else wrote may begin so, too.
const NAMES_FILE: &[u8] = br#","content":{"$file""#;

/// The record as a line; a content that makes it too large, or would be read as the name of a file, goes into a file.
fn compose<C: Serialize, M: Serialize>(
    line: &mut Vec<u8>,
    head: &Head<'_>,
    content: &C,
    metadata: &M,
    bodies: &Bodies,
) -> io::Result<()> {
    line::seal(line, head, content, metadata)?;
    if line.len() <= MAX_RECORD && memchr::memmem::find(line, NAMES_FILE).is_none() {
        return Ok(());
    }
    let content = bodies.store(content)?;
    line::seal(line, head, &content, metadata)?;
    if line.len() <= MAX_RECORD {
        return Ok(());
    }
    Err(io::Error::other("the metadata of a record has no room"))
}
