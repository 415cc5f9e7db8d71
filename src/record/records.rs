//! Reads a log record by record. Each is checked before it is handed out: its seal, its place in the chain, its type.
//! One line is in memory at a time. Nothing is written, and no lock is needed: a log may be read while it grows.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read};
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use serde::Deserialize;
use serde_json::value::RawValue;
use uuid::Uuid;

use super::damage::{Damage, Flaw};
use super::line::{self, Chain};
use super::{Body, FORMAT, Kind, LogError, MAX_RECORD, claim};

/// Bytes that are read at once.
const READ: usize = 128 << 10;
/// The largest end without a line break that a loss of power may leave: unwritten bytes of many records.
const MAX_TORN: u64 = 16 << 20;

/// One record, as it was written.
#[derive(Debug, Clone)]
pub struct Record {
    /// The number of its line, counted from 1.
    pub line: u64,
    /// Where its line begins, in bytes.
    pub offset: u64,
    /// Its number in the file, counted from 0.
    pub seq: u64,
    /// Its own id.
    pub id: Uuid,
    /// The id of the record that it belongs to.
    pub parent: Option<Uuid>,
    /// When it was written: milliseconds since 1970. Clocks may go backwards; `seq` does not.
    pub timestamp: u64,
    /// What it says.
    pub kind: Kind,
    /// `null` where its type has none.
    pub content: Body,
    /// JSON whose form depends on the type.
    pub metadata: Box<RawValue>,
}

impl Record {
    fn of(read: &line::Read<'_>, line: u64, offset: u64) -> Result<Self, Flaw> {
        Ok(Self {
            line,
            offset,
            seq: read.seq,
            id: read.id,
            parent: read.parent_id,
            timestamp: read.timestamp,
            kind: Kind::of(&read.kind),
            content: Body::of(read.content)?,
            metadata: read.metadata.to_owned(),
        })
    }

    /// The metadata as that of its type, one of [`super::metadata`].
    ///
    /// # Errors
    /// It has another form: who wrote it was no toolq, since its seal holds.
    pub fn metadata<'a, M: Deserialize<'a>>(&'a self) -> Result<M, Damage> {
        serde_json::from_str(self.metadata.get()).map_err(|error| Damage {
            line: self.line,
            offset: self.offset,
            what: Flaw::Metadata(error.to_string()),
        })
    }
}

/// The records of a log, from its first to its last. After an error there are no more.
pub struct Records {
    from: BufReader<From>,
    /// The line that is being read; kept for its room.
    line: Vec<u8>,
    /// Whole records so far.
    lines: u64,
    /// Where the next line begins.
    offset: u64,
    chain: Chain,
    newer: Option<(u32, u32)>,
    stopped: bool,
}

impl Records {
    /// Opens a log to look at it, behind a link and somebody else's as well. What can't be a log (a folder, a device, a
    /// pipe) is refused.
    ///
    /// # Errors
    /// Why it can't be read.
    pub fn open(path: &Path) -> Result<Self, LogError> {
        claim::open_to_read(path).map(Self::of)
    }

    /// Reads a file that is open already, wherever its cursor stands.
    pub(super) fn of(file: File) -> Self {
        Self {
            from: BufReader::with_capacity(READ, From { file, at: 0 }),
            line: Vec::new(),
            lines: 0,
            offset: 0,
            chain: Chain::start(),
            newer: None,
            stopped: false,
        }
    }

    /// The record that stands at `offset` in `len` bytes, its break included, and was read there before.
    pub(super) fn at(file: &File, offset: u64, len: u32) -> Result<Record, Damage> {
        let mut line = vec![0; len as usize];
        let read = file.read_exact_at(&mut line, offset);
        let read = read.map_err(|error| unreadable(&error));
        let read = read.and_then(|()| line::read(line.trim_ascii_end()));
        let record = read.and_then(|read| Record::of(&read, 0, offset));
        record.map_err(|what| Damage {
            line: 0,
            offset,
            what,
        })
    }

    /// Goes on behind the last whole record: for a file that grew since the end was reached.
    pub fn again(&mut self) {
        self.from.get_mut().at = self.offset;
        let read = self.from.buffer().len();
        self.from.consume(read);
        self.stopped = false;
    }

    /// Whether somebody writes it now, as far as can be told.
    pub fn is_written(&self) -> bool {
        let file = &self.from.get_ref().file;
        // Who writes keeps it locked. A lock that is had is given back at once, for somebody may be about to.
        match file.try_lock_shared() {
            Ok(()) => file.unlock().is_err(),
            Err(_) => true,
        }
    }

    /// Bytes of the whole records that were read.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// The line of the record that was read last, without its break.
    pub fn last_line(&self) -> &str {
        // A record was read of it, so it is UTF-8.
        str::from_utf8(&self.line).unwrap_or_default()
    }

    /// How many whole records were read.
    pub fn lines(&self) -> u64 {
        self.lines
    }

    /// The format, major and minor, of what a newer toolq wrote of the part that was read: it can be read, but not
    /// continued.
    pub fn newer(&self) -> Option<(u32, u32)> {
        self.newer
    }

    /// What a record behind those that were read continues.
    pub(super) fn end(&self) -> &Chain {
        &self.chain
    }

    fn read(&mut self) -> Result<Option<Record>, Flaw> {
        self.line.clear();
        let mut room = (&mut self.from).take(MAX_RECORD as u64);
        let read = room.read_until(b'\n', &mut self.line);
        match read.map_err(|error| unreadable(&error))? {
            0 => return Ok(None),
            _ if self.line.last() == Some(&b'\n') => {}
            _ => return Err(self.unfinished()?),
        }
        self.line.pop();
        let read = line::read(&self.line)?;
        self.chain.check(read.seq, &read.prev)?;
        let record = Record::of(&read, self.lines + 1, self.offset)?;
        self.newer = understood(&record)?.or(self.newer);
        self.chain.push(&self.line);
        self.offset += self.line.len() as u64 + 1;
        self.lines += 1;
        Ok(Some(record))
    }

    /// What is wrong with the first line: most files that have something wrong there are no logs.
    fn first(&self, what: Flaw) -> Flaw {
        let torn = matches!(what, Flaw::Torn { .. });
        match what {
            Flaw::Unreadable(_) => what,
            _ if line::may_begin_log(&self.line, torn) => what,
            _ => Flaw::NotALog,
        }
    }

    /// What a line without an end is: torn by who wrote it, unless something follows that no torn write leaves.
    fn unfinished(&mut self) -> Result<Flaw, Flaw> {
        let mut bytes = self.line.len() as u64;
        loop {
            let more = self.from.fill_buf().map_err(|error| unreadable(&error))?;
            if more.is_empty() {
                break;
            }
            if more.contains(&b'\n') {
                return Ok(Flaw::TooLong);
            }
            let read = more.len();
            bytes += read as u64;
            self.from.consume(read);
        }
        if bytes > MAX_TORN {
            return Ok(Flaw::TooLong);
        }
        // A whole record whose line break became another byte; zeros are what a disk has that was not written.
        match self.line.split_last() {
            Some((last, record)) if *last != 0 && line::read(record).is_ok() => Ok(Flaw::Checksum),
            _ => Ok(Flaw::Torn { bytes }),
        }
    }
}

impl Iterator for Records {
    type Item = Result<Record, Damage>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.stopped {
            return None;
        }
        let read = self.read().map_err(|what| Damage {
            line: self.lines + 1,
            offset: self.offset,
            what: if self.lines == 0 {
                self.first(what)
            } else {
                what
            },
        });
        self.stopped = !matches!(read, Ok(Some(_)));
        read.transpose()
    }
}

/// A file that is read from a place of its own: others may have a descriptor of it, and its cursor.
struct From {
    file: File,
    at: u64,
}

impl Read for From {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read_at(bytes, self.at)?;
        self.at += read as u64;
        Ok(read)
    }
}

fn unreadable(error: &io::Error) -> Flaw {
    Flaw::Unreadable(error.to_string())
}

#[derive(Deserialize)]
struct SessionFormat {
    format: Version,
}

#[derive(Deserialize)]
struct Version {
    major: u32,
    minor: u32,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Demand {
    must_understand: bool,
}

/// Refuses what must be understood and isn't. Returns the format of a session where it is a newer minor one.
fn understood(record: &Record) -> Result<Option<(u32, u32)>, Flaw> {
    let metadata = record.metadata.get();
    match &record.kind {
        Kind::Session => {
            let session = serde_json::from_str(metadata);
            let SessionFormat {
                format: Version { major, minor },
            } = session.map_err(|error| Flaw::Metadata(error.to_string()))?;
            if major != FORMAT.0 {
                return Err(Flaw::Newer { major, minor });
            }
            Ok((minor > FORMAT.1).then_some((major, minor)))
        }
        Kind::Other(name) => {
            let demand: Demand = serde_json::from_str(metadata).unwrap_or_default();
            if demand.must_understand {
                return Err(Flaw::MustUnderstand(name.to_string()));
            }
            Ok(None)
        }
        _ if record.seq == 0 => Err(Flaw::NotALog),
        _ => Ok(None),
    }
}
