//! A file that grows by the size of a record, with an fsync each time: the least that a durable log can cost.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Write as _};
use std::path::Path;
use std::process::Command;

use crate::Result;

/// A file whose every append is synced to disk.
pub struct SyncedFile(File);

impl SyncedFile {
    /// Creates the file.
    ///
    /// # Errors
    /// It can't be created.
    pub fn new(path: &Path) -> io::Result<Self> {
        File::create(path).map(Self)
    }

    /// Appends 400 bytes and returns when they're on disk.
    ///
    /// # Errors
    /// They can't be written.
    pub fn append_synced(&mut self) -> io::Result<()> {
        self.0.write_all(&[b'x'; 400])?;
        self.0.sync_data()
    }
}

/// Runs `command`, then appends to a new file at `path` `times` times.
///
/// # Errors
/// The command fails, or the file can't be written.
pub fn run(times: usize, path: &Path, command: &[OsString]) -> Result<()> {
    let (program, arguments) = command.split_first().ok_or("no command given")?;
    let status = Command::new(program).args(arguments).status()?;
    if !status.success() {
        return Err(format!("the command ended with {status}").into());
    }
    let mut synced = SyncedFile::new(path)?;
    Ok((0..times).try_for_each(|_| synced.append_synced())?)
}
