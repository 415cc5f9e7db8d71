//! Reads a part of a kept output.

use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::Path;

use rustix::fs::{Mode, OFlags};

use crate::conversation_outputs::char_boundary::{MAX_CHAR_BYTES, floor_boundary, unit_len};

/// An output that is open for reading.
#[derive(Debug)]
pub(super) struct OutputFile {
    file: File,
    pub(super) len: u64,
}

/// A part of an output, cut between characters.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct OutputPage {
    pub(super) begin: u64,
    pub(super) end: u64,
    pub(super) text: String,
}

impl OutputFile {
    /// Opens a kept output. A program may have put something else in its place, so only a regular file of this user is taken,
    /// and no link.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let file: File = rustix::fs::open(path, flags, Mode::empty())?.into();
        let metadata = file.metadata()?;
        let is_own = metadata.uid() == rustix::process::geteuid().as_raw();
        if !metadata.is_file() || !is_own || metadata.nlink() != 1 {
            return Err(io::Error::other("it isn't a file that toolq wrote"));
        }
        let len = metadata.len();
        Ok(Self { file, len })
    }

    /// Returns the bytes from `begin` to `end`, as far as there are some.
    pub(super) fn read_bytes(&self, begin: u64, end: u64) -> io::Result<Vec<u8>> {
        let wanted = end.min(self.len).saturating_sub(begin);
        let mut bytes = vec![0; usize::try_from(wanted).unwrap_or(usize::MAX)];
        self.file.read_exact_at(&mut bytes, begin)?;
        Ok(bytes)
    }

    /// Returns at most `limit` bytes from `offset`, which must be before the end. The page begins with the character that has
    /// this byte, and has at least one character.
    pub(super) fn read_page(&self, offset: u64, limit: u64) -> io::Result<OutputPage> {
        let margin = MAX_CHAR_BYTES as u64;
        let from = offset.saturating_sub(margin);
        let wanted_end = offset.saturating_add(limit).min(self.len);
        let bytes = self.read_bytes(from, wanted_end.saturating_add(margin))?;
        let place = |position: u64| usize::try_from(position - from).unwrap_or(usize::MAX);
        let begin = floor_boundary(&bytes, place(offset));
        let mut end = floor_boundary(&bytes, place(wanted_end));
        if end <= begin {
            end = begin + unit_len(&bytes[begin..]);
        }
        Ok(OutputPage {
            begin: from + begin as u64,
            end: from + end as u64,
            text: String::from_utf8_lossy(&bytes[begin..end]).into_owned(),
        })
    }
}
