//! Where `--events` go: a file, a pipe with a name, or a descriptor that the shell opened. Nothing is written here.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::{BorrowedFd, RawFd};
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{OFlags, fcntl_getfl};
use rustix::io::{FdFlags, fcntl_getfd};

use super::failure::Failure;

const STDOUT: &str = "stdout is for the results";

/// Opens what `to` names, a path or `fd:N`.
///
/// # Errors
/// Nothing can be written there.
pub fn open(to: &str) -> Result<Box<dyn Write + Send>, Failure> {
    let opened = match to.strip_prefix("fd:") {
        _ if to == "-" => Err(STDOUT.to_owned()),
        Some(number) => descriptor(number),
        None => path(Path::new(to)),
    };
    opened.map_err(|why| {
        Failure::usage(format!("--events {to} can't be written: {why}")).with_hint(
            "name a file, or a descriptor that the shell opened: `--events fd:3 3>events.ndjson`",
        )
    })
}

fn path(path: &Path) -> Result<Box<dyn Write + Send>, String> {
    let is_pipe = fs::metadata(path).is_ok_and(|found| found.file_type().is_fifo());
    if is_pipe {
        let (path, opened) = (path.to_owned(), None);
        return Ok(Box::new(NamedPipe { path, opened }));
    }
    let file = OpenOptions::new().create(true).append(true).open(path);
    Ok(Box::new(file.map_err(|error| error.to_string())?))
}

/// A copy of the descriptor, which shares its place in the file with the shell's.
fn descriptor(number: &str) -> Result<Box<dyn Write + Send>, String> {
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
    let copy = copy.map_err(|error| error.to_string())?;
    Ok(Box::new(File::from(copy)))
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
