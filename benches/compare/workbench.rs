//! Where the rows work: a folder of their own, gone at the end.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;

use tempfile::TempDir;

use crate::Result;

/// What the rows have in common.
#[derive(Debug)]
pub struct Workbench {
    /// Measured rounds of each row.
    pub rounds: usize,
    folder: TempDir,
}

impl Workbench {
    /// # Errors
    /// There is no place for temporary files.
    pub fn new(rounds: usize) -> Result<Self> {
        Ok(Self {
            rounds,
            folder: TempDir::new()?,
        })
    }

    /// The path of a file of this name in the folder.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Makes a file out of what `write` writes; it is never held in memory.
    pub fn file(
        &self,
        name: &str,
        write: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>,
    ) -> Result<PathBuf> {
        let path = self.path(name);
        let mut out = BufWriter::with_capacity(1 << 20, File::create(&path)?);
        write(&mut out)?;
        out.flush()?;
        Ok(path)
    }
}
