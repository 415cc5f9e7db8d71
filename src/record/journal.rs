use std::io;
use std::path::{Path, PathBuf};

use serde::Serialize;
use uuid::{Builder, Uuid};

use crate::model::Clock;

use super::bodies::Bodies;
use super::file::{self, LogFile};
use super::line::{self, Chain, Head};
use super::place::folder_of;
use super::tail;
use super::{History, Kind, LogError, MAX_RECORD};

/// Adds records to the end of a log. Knows how a record is written, not what it says.
pub(super) struct Journal {
    path: PathBuf,
    file: LogFile,
    bodies: Bodies,
    chain: Chain,
    clock: Clock,
    random: fastrand::Rng,
    /// The line that is being written; kept for its room.
    line: Vec<u8>,
}

impl Journal {
    /// Opens the file and finds where it goes on, and what it says of its last task. Writes nothing.
    pub(super) fn open(path: &Path, clock: Clock) -> Result<(Self, History), LogError> {
        let file = LogFile::open(path)?;
        let (chain, history) = tail::read(path, file.file())?;
        let journal = Self {
            path: path.to_owned(),
            file,
            bodies: Bodies::new(folder_of(path)),
            chain,
            clock,
            random: fastrand::Rng::new(),
            line: Vec::with_capacity(4 << 10),
        };
        Ok((journal, history))
    }

    /// The same for a log that is there.
    pub(super) fn open_existing(path: &Path, clock: Clock) -> Result<(Self, History), LogError> {
        // Who names none wants to hear so, and no empty log.
        drop(file::open_to_read(path)?);
        Self::open(path, clock)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The folder for what is too large for a record.
    pub(super) fn folder(&self) -> &Path {
        self.bodies.folder()
    }

    /// Milliseconds since 1970.
    pub(super) fn now(&self) -> u64 {
        self.clock.ms()
    }

    /// Writes one record below `parent` and returns its id. After an error the file must not be written again.
    pub(super) fn write<C: Serialize, M: Serialize>(
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
        self.file.append(&self.line)?;
        self.chain.push(self.line.trim_ascii_end());
        Ok(id)
    }

    /// A UUID of version 7 (RFC 9562).
    fn id(&mut self, timestamp: u64) -> Uuid {
        let mut random = [0; 10];
        self.random.fill(&mut random);
        Builder::from_unix_timestamp_millis(timestamp, &random).into_uuid()
    }
}

/// The record as a line; what makes it too large goes into a file, first the content, then the metadata.
fn compose<C: Serialize, M: Serialize>(
    line: &mut Vec<u8>,
    head: &Head<'_>,
    content: &C,
    metadata: &M,
    bodies: &Bodies,
) -> io::Result<()> {
    line::seal(line, head, content, metadata)?;
    if line.len() <= MAX_RECORD {
        return Ok(());
    }
    let content = bodies.store(content)?;
    line::seal(line, head, &content, metadata)?;
    if line.len() <= MAX_RECORD {
        return Ok(());
    }
    let metadata = bodies.store(metadata)?;
    line::seal(line, head, &content, &metadata)
}
