//! An input's bytes: read once from front to back, then again wherever a call stands.
//!
//! A regular file is read where it is. A pipe is copied, while it is read, into a temporary file that has no name, so
//! that memory never holds it and nothing is left behind.

use std::fs::File;
use std::io::{self, Read, Seek as _, Write as _};
use std::os::unix::fs::FileExt as _;

use sha2::{Digest as _, Sha256};

use crate::transcript::error::{Fault, InputError, Place};

/// How much is read at a time where only places are counted, in bytes.
const STRIDE: usize = 64 * 1024;

/// An input that is still to be read.
pub struct Source {
    kept: Kept,
    /// What is still copied into the file.
    feed: Option<Box<dyn Read>>,
    /// Of what was read so far, where that is wanted.
    digest: Option<Sha256>,
}

impl Source {
    /// `file` from its present position; `name` is shown to people. What is no regular file is treated as a pipe.
    ///
    /// # Errors
    /// The file can't be looked at, or no temporary file can be made.
    pub fn file(name: impl Into<String>, mut file: File) -> Result<Self, InputError> {
        let name = name.into();
        let unreadable = |error| InputError::io(&name, "can't be read", &error);
        if !file.metadata().map_err(unreadable)?.is_file() {
            return Self::pipe(name, file);
        }
        let start = file.stream_position().map_err(unreadable)?;
        let kept = Kept { name, file, start };
        Ok(Self {
            kept,
            feed: None,
            digest: None,
        })
    }

    /// Bytes that come only once; `name` is shown to people.
    ///
    /// # Errors
    /// No temporary file can be made.
    pub fn pipe(name: impl Into<String>, feed: impl Read + 'static) -> Result<Self, InputError> {
        let name = name.into();
        let file = tempfile::tempfile()
            .map_err(|error| InputError::io(&name, "has no temporary file to wait in", &error))?;
        let kept = Kept {
            name,
            file,
            start: 0,
        };
        let feed: Option<Box<dyn Read>> = Some(Box::new(feed));
        Ok(Self {
            kept,
            feed,
            digest: None,
        })
    }

    /// The same, with the SHA-256 of its bytes counted on the way.
    #[must_use]
    pub fn digested(self) -> Self {
        Self {
            digest: Some(Sha256::new()),
            ..self
        }
    }

    /// Reads on until `buffer` is full or the input ends; how many bytes were read.
    pub(super) fn fill(&mut self, buffer: &mut [u8]) -> Result<usize, InputError> {
        let mut filled = 0;
        while filled < buffer.len() {
            match self.read(&mut buffer[filled..]) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(InputError::io(&self.kept.name, "can't be read", &error)),
            }
        }
        if let Some(digest) = &mut self.digest {
            digest.update(&buffer[..filled]);
        }
        Ok(filled)
    }

    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let Some(feed) = &mut self.feed else {
            return self.kept.file.read(buffer);
        };
        let count = feed.read(buffer)?;
        self.kept.file.write_all(&buffer[..count])?;
        Ok(count)
    }

    /// The fault with its place counted.
    pub(super) fn locate(&self, fault: Fault) -> InputError {
        self.kept.locate(fault)
    }

    /// The digest of what was read, in hexadecimal; empty where none was wanted.
    pub(super) fn sha256(&mut self) -> String {
        let digest = self.digest.take().map(Sha256::finalize);
        let bytes = digest.iter().flatten();
        bytes.fold(String::new(), |hex, byte| hex + &format!("{byte:02x}"))
    }

    /// What was read, to be read again.
    pub(super) fn keep(self) -> Kept {
        self.kept
    }
}

/// An input that was read, and can be read again anywhere.
pub(crate) struct Kept {
    name: String,
    file: File,
    /// Where the input begins in `file`.
    start: u64,
}

impl Kept {
    /// The file, where the input is all of it.
    pub fn all_of_it(&self) -> Option<&File> {
        Some(&self.file).filter(|_| self.start == 0)
    }

    /// The bytes from `begin` to `end`, as text.
    pub fn text(&self, begin: u64, end: u64) -> Result<String, InputError> {
        let mut bytes = vec![0; usize::try_from(end - begin).unwrap_or(usize::MAX)];
        self.file
            .read_exact_at(&mut bytes, self.start + begin)
            .and_then(|()| String::from_utf8(bytes).map_err(io::Error::other))
            .map_err(|error| InputError::io(&self.name, "changed while it was read", &error))
    }

    /// The fault with its place counted. Where its document begins on an earlier line, that line is named: it may be the
    /// one that is not closed.
    pub fn locate(&self, fault: Fault) -> InputError {
        let place = self.place(fault.offset).ok();
        let since = fault.since.and_then(|begin| self.place(begin).ok());
        let begin = match (since, place) {
            (Some(since), Some(place)) if since.line < place.line => Some(since.line),
            _ => None,
        };
        InputError {
            source: self.name.clone(),
            place,
            message: fault.message,
            hint:
                fault
                    .hint
                    .or(begin
                        .map(|line| format!("the value that is not closed begins on line {line}"))),
        }
    }

    fn place(&self, offset: u64) -> io::Result<Place> {
        let mut place = Place { line: 1, column: 1 };
        let mut bytes = vec![0; STRIDE];
        let (mut from, end) = (self.start, self.start + offset);
        while from < end {
            let want = usize::try_from(end - from).map_or(STRIDE, |left| left.min(STRIDE));
            let count = self.file.read_at(&mut bytes[..want], from)?;
            if count == 0 {
                break;
            }
            bytes[..count].iter().for_each(|&byte| place.pass(byte));
            from += count as u64;
        }
        Ok(place)
    }
}

impl Place {
    /// Moves behind `byte`; a character counts at its first byte.
    fn pass(&mut self, byte: u8) {
        match byte {
            b'\n' => (self.line, self.column) = (self.line + 1, 1),
            0x80..0xC0 => {}
            _ => self.column += 1,
        }
    }
}
