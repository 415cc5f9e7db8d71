//! Stubs for systems without subreapers. There is no supervisor: the host starts programs itself.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Uninhabited on this system.
#[derive(Debug, Clone)]
pub enum ReaperPools {}

/// What programs can write. This system can't confine them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CopyConfinement {
    /// The directory whose place the copy takes.
    pub root: PathBuf,
    /// The copy, which programs find at the path of `root`.
    pub copy: PathBuf,
    /// A directory in which the private temporary directories are created.
    pub scratch: PathBuf,
    /// The temporary directories that become private.
    pub temp_dirs: Vec<PathBuf>,
    /// Whether programs find the copy at the path of `root`.
    pub is_mounted: bool,
}

impl CopyConfinement {
    /// Always fails.
    ///
    /// # Errors
    /// This system can't confine programs.
    pub fn check(&self, _: &Path) -> io::Result<()> {
        Err(io::Error::other("this needs Linux"))
    }
}

impl ReaperPools {
    /// Always returns `None`.
    pub fn new(_: &Path, _: &str) -> Option<Self> {
        None
    }

    /// Can't be called: the type is uninhabited.
    #[must_use]
    pub fn confined(self, _: &CopyConfinement) -> Self {
        match self {}
    }

    /// Can't be called: the type is uninhabited.
    ///
    /// # Errors
    /// None.
    pub fn start_ahead(&self) -> io::Result<()> {
        match *self {}
    }

    /// Can't be called: the type is uninhabited.
    pub fn begin_close(&self) {
        match *self {}
    }

    /// Can't be called: the type is uninhabited.
    pub fn close(&self) {
        match *self {}
    }
}

/// Always returns `None`: no supervisor is ever started.
pub fn supervise(_: &[OsString]) -> Option<ExitCode> {
    None
}

/// Always returns `true`: without subreapers, `/proc` makes no difference.
pub fn shows_own_pid_namespace() -> bool {
    true
}

/// Does nothing: other systems have no `/proc` to protect.
#[expect(clippy::unnecessary_wraps, reason = "the signature is that on Linux")]
pub fn make_non_dumpable() -> io::Result<()> {
    Ok(())
}

/// Does nothing: without a supervisor, the programs would inherit the raised limit.
#[expect(clippy::unnecessary_wraps, reason = "the signature is that on Linux")]
pub fn raise_open_file_limit() -> std::io::Result<()> {
    Ok(())
}
