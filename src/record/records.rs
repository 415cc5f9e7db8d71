//! Reads a log record by record. Each is checked before it is handed out: its seal, its place in the chain, its type.
//! One line is in memory at a time. Nothing is written, and no lock is needed: a log may be read while it grows.

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read};
use std::ops::Range;
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

/// One record, as it was written: in a line of somebody's, or by itself.
#[derive(Debug, Clone)]
pub struct Record<'l> {
    /// The number of its line, counted from 1.
    pub line: u64,
    /// Where its line begins, in bytes.
    pub offset: u64,
    /// Where its line ends, its break included, in bytes.
    pub end: u64,
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
    pub content: Body<'l>,
    /// JSON whose form depends on the type.
    pub metadata: Cow<'l, RawValue>,
}

impl<'l> Record<'l> {
    fn of(read: &line::Read<'l>, line: u64, place: Range<u64>) -> Result<Self, Flaw> {
        Ok(Self {
            line,
            offset: place.start,
            end: place.end,
            seq: read.seq,
            id: read.id,
            parent: read.parent_id,
            timestamp: read.timestamp,
            kind: Kind::of(&read.kind),
            content: Body::of(read.content)?,
            metadata: Cow::Borrowed(read.metadata),
        })
    }

    /// The same without the line that it stands in.
    #[must_use]
    pub fn into_owned(self) -> Record<'static> {
        Record {
            content: self.content.into_owned(),
            metadata: Cow::Owned(self.metadata.into_owned()),
            ..self
        }
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
    /// Opens a log for reading. What can't be a log (a link, a device, a pipe, somebody else's file) is refused.
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
    pub(super) fn at(file: &File, offset: u64, len: u32) -> Result<Record<'static>, Damage> {
        let mut line = vec![0; len as usize];
        let read = file.read_exact_at(&mut line, offset);
        let read = read.map_err(|error| unreadable(&error));
        let read = read.and_then(|()| line::read(line.trim_ascii_end()));
        let place = offset..offset + u64::from(len);
        let record = read.and_then(|read| Record::of(&read, 0, place));
        record.map(Record::into_owned).map_err(|what| Damage {
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

    /// The next record, in the line that is read: nothing is copied, and it goes before another is read.
    pub fn lend(&mut self) -> Option<Result<Record<'_>, Damage>> {
        if self.stopped {
            return None;
        }
        self.stopped = true;
        match self.fetch() {
            Ok(true) => {}
            Ok(false) => return None,
            Err(what) => return Some(Err(self.damaged(what))),
        }
        let place = self.offset..self.offset + self.line.len() as u64 + 1;
        match verified(&self.line, self.lines + 1, place, &self.chain) {
            Ok((record, newer)) => {
                self.newer = newer.or(self.newer);
                self.chain.push(&self.line);
                self.offset = record.end;
                self.lines = record.line;
                self.stopped = false;
                Some(Ok(record))
            }
            Err(what) => Some(Err(self.damaged(what))),
        }
    }

    /// Reads the next line, and takes its break off. False where there is none.
    fn fetch(&mut self) -> Result<bool, Flaw> {
        self.line.clear();
        let mut room = (&mut self.from).take(MAX_RECORD as u64);
        let read = room.read_until(b'\n', &mut self.line);
        match read.map_err(|error| unreadable(&error))? {
            0 => return Ok(false),
            _ if self.line.last() == Some(&b'\n') => {}
            _ => return Err(self.unfinished()?),
        }
        self.line.pop();
        Ok(true)
    }

    fn damaged(&self, what: Flaw) -> Damage {
        let first = self.lines == 0;
        Damage {
            line: self.lines + 1,
            offset: self.offset,
            what: if first { self.first(what) } else { what },
        }
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
    type Item = Result<Record<'static>, Damage>;

    fn next(&mut self) -> Option<Self::Item> {
        self.lend().map(|record| record.map(Record::into_owned))
    }
}

/// The record of a line, if it is whole and continues `chain`, with what [`understood`] says of it.
fn verified<'l>(
    bytes: &'l [u8],
    line: u64,
    place: Range<u64>,
    chain: &Chain,
) -> Result<(Record<'l>, Option<(u32, u32)>), Flaw> {
    let read = line::read(bytes)?;
    chain.check(read.seq, &read.prev)?;
    let record = Record::of(&read, line, place)?;
    let newer = understood(&record)?;
    Ok((record, newer))
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
