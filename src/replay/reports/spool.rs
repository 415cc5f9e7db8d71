use std::fs::File;
use std::io::{self, BufWriter, Seek as _, SeekFrom, Write};

/// Text that waits, in a file without a name, until what belongs before it is known.
#[derive(Default)]
pub(crate) struct Spool(Option<BufWriter<File>>);

impl Spool {
    /// Writes text behind what waits.
    pub(super) fn push(&mut self, text: &str) -> io::Result<()> {
        let file = match &mut self.0 {
            Some(file) => file,
            none => none.insert(BufWriter::new(tempfile::tempfile()?)),
        };
        file.write_all(text.as_bytes())
    }

    /// Hands everything to `out`; nothing waits any more.
    pub(super) fn pour(&mut self, out: &mut dyn Write) -> io::Result<()> {
        let Some(mut file) = self.0.take() else {
            return Ok(());
        };
        file.seek(SeekFrom::Start(0))?;
        io::copy(file.get_mut(), out).map(drop)
    }

    /// Hands everything to another spool.
    pub(super) fn pour_into(&mut self, other: &mut Self) -> io::Result<()> {
        // It has a file from its first text on.
        other.push("")?;
        match &mut other.0 {
            Some(out) => self.pour(out),
            None => Ok(()),
        }
    }

    /// Whether nothing waits.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_none()
    }
}
