//! Text that is kept in a temporary file.

use std::fs::File;
use std::io::{self, BufWriter, Seek as _, SeekFrom, Write};

use crate::input::create_temporary_file;

/// Text that is kept in an unlinked file until what precedes it is known.
#[derive(Default)]
pub(crate) struct TextSpool(Option<BufWriter<File>>);

impl TextSpool {
    /// Appends text.
    pub(super) fn push(&mut self, text: &str) -> io::Result<()> {
        let file = match &mut self.0 {
            Some(file) => file,
            none => none.insert(BufWriter::new(create_temporary_file()?)),
        };
        file.write_all(text.as_bytes())
    }

    /// Writes everything to `out` and leaves the spool empty.
    pub(super) fn drain_to(&mut self, out: &mut dyn Write) -> io::Result<()> {
        let Some(mut file) = self.0.take() else {
            return Ok(());
        };
        file.seek(SeekFrom::Start(0))?;
        io::copy(file.get_mut(), out).map(drop)
    }

    /// Appends everything to another spool and leaves this one empty.
    pub(super) fn drain_into(&mut self, other: &mut Self) -> io::Result<()> {
        // A spool has a file only after the first push.
        other.push("")?;
        match &mut other.0 {
            Some(file) => self.drain_to(file),
            None => Ok(()),
        }
    }

    /// Returns whether the spool is empty.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_none()
    }
}
