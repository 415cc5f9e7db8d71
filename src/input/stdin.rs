//! Standard input, which `-` names. Only one argument can read it.

use std::fs::File;
use std::io::{self, ErrorKind, IsTerminal as _, Read as _};
use std::os::fd::AsFd as _;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::input::{TemporaryFileError, create_temporary_file};
use crate::output::CommandError;

static IS_TAKEN: AtomicBool = AtomicBool::new(false);

/// Returns whether stdin is a terminal, where toolq would seem to hang while it waits for input that wasn't asked for.
pub fn is_terminal() -> bool {
    io::stdin().is_terminal()
}

/// Returns stdin as a file. A redirected file (`< FILE`) is read in place, like one that was named.
///
/// # Errors
/// Another argument has already read it, or it is closed.
pub fn take() -> Result<File, CommandError> {
    if IS_TAKEN.swap(true, Ordering::Relaxed) {
        return Err(CommandError::usage("stdin can be read only once")
            .with_hint("leave one `-` in the command, and name files for the rest"));
    }
    let stdin = io::stdin().as_fd().try_clone_to_owned();
    let stdin = stdin.map_err(|error| unreadable_stdin(&error))?;
    Ok(File::from(stdin))
}

/// Reads stdin to its end.
///
/// # Errors
/// As [`take`], or reading fails.
pub fn read_to_end() -> Result<Vec<u8>, CommandError> {
    let mut bytes = Vec::new();
    take()?
        .read_to_end(&mut bytes)
        .map_err(|error| unreadable_stdin(&error))?;
    Ok(bytes)
}

/// Returns a file with the content of stdin whose parts can be read in any order.
///
/// # Errors
/// As [`take`], or the content can't be copied to a temporary file.
pub fn spool() -> Result<File, CommandError> {
    let mut stdin = take()?;
    let is_regular = stdin.metadata().is_ok_and(|metadata| metadata.is_file());
    if is_regular {
        return Ok(stdin);
    }
    let spooled = create_temporary_file().and_then(|mut file| {
        io::copy(&mut stdin, &mut file)?;
        Ok(file)
    });
    spooled.map_err(|error| match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge => {
            uncopied_stdin(&error)
        }
        _ if is_of_temporary_file(&error) => uncopied_stdin(&error),
        _ => unreadable_stdin(&error),
    })
}

fn is_of_temporary_file(error: &io::Error) -> bool {
    let inner = error.get_ref();
    inner
        .and_then(|inner| inner.downcast_ref::<TemporaryFileError>())
        .is_some()
}

/// What can't be read twice is copied to a file.
fn uncopied_stdin(error: &io::Error) -> CommandError {
    let message = format!("stdin can't be copied to a temporary file: {error}");
    let failure = CommandError::unusable_file(message, error);
    match failure.hint {
        Some(_) => failure,
        None => failure
            .with_hint("set TMPDIR to a directory with enough space in which you can create files"),
    }
}

fn unreadable_stdin(error: &io::Error) -> CommandError {
    CommandError::unusable_file(format!("stdin can't be read: {error}"), error)
}
