//! A file that grows by the size of a record, and is on the disk each time: the least that a log can cost.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Write as _};
use std::path::Path;
use std::process::Command;

use crate::Result;

/// The file.
pub struct Synced(File);

impl Synced {
    /// A new one.
    ///
    /// # Errors
    /// It can't be made.
    pub fn new(path: &Path) -> io::Result<Self> {
        File::create(path).map(Self)
    }

    /// Adds a line; returns when it is on the disk.
    ///
    /// # Errors
    /// It can't be written.
    pub fn tell(&mut self) -> io::Result<()> {
        self.0.write_all(&[b'x'; 400])?;
        self.0.sync_data()
    }
}

/// Runs `command`, and then tells a file at `path` so often.
///
/// # Errors
/// The command fails, or the file can't be written.
pub fn run(times: usize, path: &Path, command: &[OsString]) -> Result<()> {
    let (program, arguments) = command.split_first().ok_or("there is no command")?;
    let status = Command::new(program).args(arguments).status()?;
    if !status.success() {
        return Err(format!("the command ended with {status}").into());
    }
    let mut synced = Synced::new(path)?;
    Ok((0..times).try_for_each(|_| synced.tell())?)
}
