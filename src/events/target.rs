//! Where `--events` go: a file, a pipe with a name, or a descriptor that the shell opened. Nothing is written here.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::{BorrowedFd, RawFd};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{OFlags, fcntl_getfl};
use rustix::io::{FdFlags, fcntl_getfd};

use crate::output::Failure;

const STDOUT: &str = "stdout is for the results";

/// Opens what `to` names, a path or `fd:N`; `log` is the session log, where a file was named for it.
///
/// # Errors
/// Nothing can be written there, or it is the log, which nobody else may write.
pub fn open(to: &str, log: Option<&Path>) -> Result<Box<dyn Write + Send>, Failure> {
    let opened = match to.strip_prefix("fd:") {
        _ if to == "-" => Err(STDOUT.to_owned()),
        Some(number) => descriptor(number, log),
        None => path(Path::new(to), log),
    };
    opened.map_err(|why| {
        Failure::usage(format!("--events {to} can't be written: {why}")).with_hint(
            "name a file, or a descriptor that the shell opened: `--events fd:3 3>events.ndjson`",
        )
    })
}

fn path(path: &Path, log: Option<&Path>) -> Result<Box<dyn Write + Send>, String> {
    let is_pipe = fs::metadata(path).is_ok_and(|found| found.file_type().is_fifo());
    if is_pipe {
        let (path, opened) = (path.to_owned(), None);
        return Ok(Box::new(NamedPipe { path, opened }));
    }
    let file = OpenOptions::new().create(true).append(true).open(path);
    let file = file.map_err(|error| error.to_string())?;
    apart(&file, log)?;
    Ok(Box::new(file))
}

/// Refuses a file that is the log.
fn apart(file: &File, log: Option<&Path>) -> Result<(), String> {
    let of_log = log.and_then(|log| fs::metadata(log).ok());
    let own = file.metadata().map_err(|error| error.to_string())?;
    match of_log {
        Some(log) if (log.dev(), log.ino()) == (own.dev(), own.ino()) => {
            Err("it is the session log, which holds nothing but records".to_owned())
        }
        _ => Ok(()),
    }
}

/// A copy of the descriptor, which shares its place in the file with the shell's.
fn descriptor(number: &str, log: Option<&Path>) -> Result<Box<dyn Write + Send>, String> {
    let number: RawFd = match number.parse() {
        Ok(1) => return Err(STDOUT.to_owned()),
        Ok(number) if number >= 0 => number,
        _ => return Err(format!("`{number}` is no number of a descriptor")),
    };
    // SAFETY: the number may name anything or nothing; the calls below only ask, and copy what was handed over.
    let handed = unsafe { BorrowedFd::borrow_raw(number) };
    // What toolq itself opened is closed on exec; what it was started with can't be.
    let is_open = fcntl_getfd(handed).is_ok_and(|flags| !flags.contains(FdFlags::CLOEXEC));
    if !is_open {
        return Err(format!("descriptor {number} is not open"));
    }
    let mode = fcntl_getfl(handed).map_err(|error| error.to_string())?;
    if mode & OFlags::RWMODE == OFlags::RDONLY {
        return Err(format!("descriptor {number} is open for reading only"));
    }
    let copy = handed.try_clone_to_owned();
    let copy = File::from(copy.map_err(|error| error.to_string())?);
    apart(&copy, log)?;
    Ok(Box::new(copy))
}

/// A pipe with a name. Opening it waits for its reader, so it is opened by who writes to it, and the run goes on.
struct NamedPipe {
    path: PathBuf,
    opened: Option<File>,
}

impl Write for NamedPipe {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.opened {
            Some(pipe) => pipe.write(bytes),
            closed => {
                let pipe = OpenOptions::new().write(true).open(&self.path)?;
                closed.insert(pipe).write(bytes)
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
