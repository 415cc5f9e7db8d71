//! The environment of the rows, with a temporary directory that is removed at the end.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;

use tempfile::TempDir;

use crate::Result;

/// What all rows have in common.
#[derive(Debug)]
pub struct BenchContext {
    /// Number of measured rounds of each row.
    pub rounds: usize,
    /// Directory in which MCP servers are installed. Empty if there is no such directory.
    pub mcp_kit: PathBuf,
    dir: TempDir,
}

impl BenchContext {
    /// Creates the temporary directory.
    ///
    /// # Errors
    /// It can't be created.
    pub fn new(rounds: usize, mcp_kit: PathBuf) -> Result<Self> {
        Ok(Self {
            rounds,
            mcp_kit,
            dir: TempDir::new()?,
        })
    }

    /// Returns the path of a file with this name in the directory.
    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Creates a file with what `write` writes, without holding it in memory.
    pub fn write_file(
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
