//! Reads a log record by record. The seal of each record, its number and its type are checked before
//! it is returned. Only one line is in memory at a time. Reading needs no lock: a log can be read while it grows.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read};
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use crate::error::{Corruption, CorruptionKind, LogError};
use crate::records::{FormatVersion, Record, parse_next_record, record};
use crate::{MAX_RECORD_BYTES, sessions};

/// Size of the read buffer in bytes.
const READ_BUFFER_BYTES: usize = 128 << 10;
/// Largest end without a line break that a power loss may leave, in bytes: many records that never reached the disk.
pub(crate) const MAX_TORN_BYTES: u64 = 16 << 20;

/// Iterates over the records of a log, from the first to the last. An error ends the iteration.
pub struct RecordReader {
    source: BufReader<FileCursor>,
    /// The line being read; kept to reuse its allocation.
    line: Vec<u8>,
    /// Number of whole records read so far.
    record_count: u64,
    /// Byte offset of the next line.
    offset: u64,
    newer_format: Option<FormatVersion>,
    is_stopped: bool,
}

impl RecordReader {
    /// Opens a log for reading. Follows links and accepts files of other users, but rejects what can't be a log: a
    /// directory, a device or a pipe.
    ///
    /// # Errors
    /// The log can't be read.
    pub fn open(path: &Path) -> Result<Self, LogError> {
        sessions::open_to_read(path).map(Self::from_file)
    }

    /// Reads an open regular file from its beginning, regardless of its cursor.
    pub fn from_file(file: File) -> Self {
        Self {
            source: BufReader::with_capacity(READ_BUFFER_BYTES, FileCursor { file, offset: 0 }),
            line: Vec::new(),
            record_count: 0,
            offset: 0,
            newer_format: None,
            is_stopped: false,
        }
    }

    /// Reads a record again.
    pub(crate) fn read_again(
        file: &File,
        extent: LineExtent,
    ) -> Result<Record<'static>, Corruption> {
        let LineExtent { line, offset, len } = extent;
        let line = u64::from(line);
        let mut bytes = vec![0; len as usize];
        let read = file.read_exact_at(&mut bytes, offset);
        let read = read.map_err(|error| unreadable_kind(&error));
        let byte_range = offset..offset + u64::from(len);
        read.and_then(|()| record::parse_sealed_line(bytes.trim_ascii_end(), line, byte_range))
            .map(Record::into_owned)
            .map_err(|kind| Corruption { line, offset, kind })
    }

    /// Reads the record that begins at `offset`.
    pub(crate) fn read_at(file: &File, offset: u64) -> Result<Record<'static>, Corruption> {
        let mut bytes = vec![0; MAX_RECORD_BYTES];
        let read = file.read_at(&mut bytes, offset).unwrap_or_default();
        let len = memchr::memchr(b'\n', &bytes[..read]).map_or(read, |end| end + 1);
        Self::read_again(
            file,
            LineExtent {
                offset,
                len: u32::try_from(len).unwrap_or(0),
                line: 0,
            },
        )
    }

    /// Continues after the last whole record, in case the file has grown since its end was reached.
    pub fn continue_reading(&mut self) {
        self.source.get_mut().offset = self.offset;
        let buffered = self.source.buffer().len();
        self.source.consume(buffered);
        self.is_stopped = false;
    }

    /// Returns whether a run seems to be writing the log.
    pub fn has_writer(&self) -> bool {
        let file = &self.source.get_ref().file;
        // A writer holds the lock. If we get it, release it at once, since a run may be about to start.
        match file.try_lock_shared() {
            Ok(()) => file.unlock().is_err(),
            Err(_) => true,
        }
    }

    /// Returns the size of the whole records read so far, in bytes.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Returns the line of the last record read, without its line break.
    pub fn last_line(&self) -> &str {
        // A record was parsed from it, so it is valid UTF-8.
        str::from_utf8(&self.line).unwrap_or_default()
    }

    /// Returns the number of whole records read so far.
    pub fn record_count(&self) -> u64 {
        self.record_count
    }

    /// Returns the newer format version of what has been read, if a newer toolq wrote some of it.
    /// Such a log can be read, but not continued.
    pub fn newer_format(&self) -> Option<FormatVersion> {
        self.newer_format
    }

    /// Reads the next record without copying it. The record borrows the line buffer, so it must be dropped before the
    /// next one is read.
    pub fn next_borrowed(&mut self) -> Option<Result<Record<'_>, Corruption>> {
        if self.is_stopped {
            return None;
        }
        self.is_stopped = true;
        match self.read_line() {
            Ok(true) => {}
            Ok(false) => return None,
            Err(kind) => return Some(Err(self.corruption_at_next_line(kind))),
        }
        let byte_range = self.offset..self.offset + self.line.len() as u64 + 1;
        match parse_next_record(
            &self.line,
            self.record_count + 1,
            byte_range,
            self.record_count,
        ) {
            Ok((record, newer_format)) => {
                self.newer_format = newer_format.or(self.newer_format);
                self.offset = record.end_offset;
                self.record_count = record.line;
                self.is_stopped = false;
                Some(Ok(record))
            }
            Err(kind) => Some(Err(self.corruption_at_next_line(kind))),
        }
    }

    /// Reads the next line and strips its line break. Returns `false` at the end of the file.
    fn read_line(&mut self) -> Result<bool, CorruptionKind> {
        self.line.clear();
        let mut limited = (&mut self.source).take(MAX_RECORD_BYTES as u64);
        let read = limited.read_until(b'\n', &mut self.line);
        match read.map_err(|error| unreadable_kind(&error))? {
            0 => return Ok(false),
            _ if self.line.last() == Some(&b'\n') => {}
            _ => return Err(self.classify_unterminated_line()?),
        }
        self.line.pop();
        Ok(true)
    }

    fn corruption_at_next_line(&self, kind: CorruptionKind) -> Corruption {
        let is_first_line = self.record_count == 0;
        Corruption {
            line: self.record_count + 1,
            offset: self.offset,
            kind: if is_first_line {
                self.classify_first_line(kind)
            } else {
                kind
            },
        }
    }

    /// Decides what is wrong with the first line. Usually, the file isn't a log at all.
    fn classify_first_line(&self, kind: CorruptionKind) -> CorruptionKind {
        let is_torn = matches!(kind, CorruptionKind::Torn { .. });
        match kind {
            CorruptionKind::Unreadable(_) => kind,
            _ if record::may_begin_log(&self.line, is_torn) => kind,
            _ => CorruptionKind::NotALog,
        }
    }

    /// Decides what is wrong with a line that has no line break. It is torn, unless something follows that a torn write
    /// can't leave.
    fn classify_unterminated_line(&mut self) -> Result<CorruptionKind, CorruptionKind> {
        let mut bytes = self.line.len() as u64;
        loop {
            let chunk = self
                .source
                .fill_buf()
                .map_err(|error| unreadable_kind(&error))?;
            if chunk.is_empty() {
                break;
            }
            if chunk.contains(&b'\n') {
                return Ok(CorruptionKind::TooLong);
            }
            let read = chunk.len();
            bytes += read as u64;
            self.source.consume(read);
        }
        if bytes > MAX_TORN_BYTES {
            return Ok(CorruptionKind::TooLong);
        }
        // An intact record whose line break was changed. A zero doesn't count: a disk has zeros where nothing was
        // written.
        match self.line.split_last() {
            Some((last, record))
                if *last != 0 && record::parse_sealed_line(record, 0, 0..0).is_ok() =>
            {
                Ok(CorruptionKind::WrongChecksum)
            }
            _ => Ok(CorruptionKind::Torn { bytes }),
        }
    }
}

impl Iterator for RecordReader {
    type Item = Result<Record<'static>, Corruption>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_borrowed()
            .map(|record| record.map(Record::into_owned))
    }
}

/// Reads a file at an offset of its own, since other descriptors may share the file's cursor.
struct FileCursor {
    file: File,
    offset: u64,
}

impl Read for FileCursor {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read_at(bytes, self.offset)?;
        self.offset += read as u64;
        Ok(read)
    }
}

fn unreadable_kind(error: &io::Error) -> CorruptionKind {
    CorruptionKind::Unreadable(error.to_string())
}

// Where a record is in its log, so that it can be read again.

/// Where a line is in the file.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct LineExtent {
    /// Byte offset of its beginning.
    pub(crate) offset: u64,
    /// Length in bytes, including its line break.
    pub(crate) len: u32,
    /// Its number, counted from 1. For messages only, so the numbers of later lines than this can count may all be the
    /// same.
    pub(crate) line: u32,
}

impl LineExtent {
    /// Returns where a record is. `end` is the byte offset of its end.
    pub(crate) fn from_record(record: &Record, end: u64) -> Self {
        Self {
            offset: record.offset,
            // No line is longer than 64 KiB.
            len: u32::try_from(end - record.offset).unwrap_or(u32::MAX),
            line: u32::try_from(record.line).unwrap_or(u32::MAX),
        }
    }
}
