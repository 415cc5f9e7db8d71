//! Reads a log record by record. Each is checked before it is handed out: its seal, its place in the chain, its type.
//! One line is in memory at a time. Nothing is written, and no lock is needed: a log may be read while it grows.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read};
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use crate::MAX_RECORD;
use crate::error::LogError;
use crate::open::lock;
use crate::read::corruption::{Damage, Flaw};
use crate::records::line;
use crate::records::{Chain, Record, verified};

/// Bytes that are read at once.
const READ: usize = 128 << 10;
/// The largest end without a line break that a loss of power may leave: unwritten bytes of many records.
pub(crate) const MAX_TORN: u64 = 16 << 20;

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
        lock::open_to_read(path).map(Self::of)
    }

    /// Reads a file that is open already, wherever its cursor stands.
    pub(crate) fn of(file: File) -> Self {
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
    pub(crate) fn at(file: &File, offset: u64, len: u32) -> Result<Record<'static>, Damage> {
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
    pub(crate) fn end(&self) -> &Chain {
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
