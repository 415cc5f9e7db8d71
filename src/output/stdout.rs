//! The only file that writes to stdout. It takes whole documents and lines, so that nothing on stdout is ever half of a
//! JSON value.

use std::future::pending;
use std::io::{self, IsTerminal as _, Write as _};
use std::os::fd::AsFd as _;

use tokio::io::Interest;
use tokio::net::unix::pipe::Sender;

use crate::output::exit::Exit;
use crate::output::stdout_probe;

/// Why stdout takes no more.
#[derive(Debug)]
pub enum OutputLost {
    /// Nobody reads any more.
    Closed,
    /// It is full, or gone.
    Failed(io::Error),
}

impl From<io::Error> for OutputLost {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::Closed,
            _ => Self::Failed(error),
        }
    }
}

/// Whether a person reads it.
pub fn is_terminal() -> bool {
    io::stdout().is_terminal()
}

/// Its width in columns, where it is a terminal.
pub fn width() -> Option<usize> {
    let (width, _) = terminal_size::terminal_size_of(io::stdout())?;
    Some(usize::from(width.0))
}

/// Waits until nobody can read it any more; for ever where that can't be seen, as of a file. Needs a runtime.
pub async fn abandoned() {
    let stdout = io::stdout().as_fd().try_clone_to_owned();
    // It is watched only, so that it need not be one that never blocks.
    match stdout.and_then(Sender::from_owned_fd_unchecked) {
        Ok(watched) if watched.ready(Interest::ERROR).await.is_ok() => {}
        _ => pending().await,
    }
}

/// Looks whether there is a stdout at all, before anything is done for it.
///
/// # Errors
/// toolq was started without one.
pub fn check() -> Result<(), OutputLost> {
    if stdout_probe::stdout() {
        return Err(OutputLost::Failed(rustix::io::Errno::BADF.into()));
    }
    Ok(())
}

/// Writes `text` and a newline, and hands it on at once.
///
/// # Errors
/// A closed pipe, a failed write, or none to write to.
pub fn line(text: &str) -> Result<(), OutputLost> {
    check()?;
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.as_bytes())?;
    stdout.write_all(b"\n")?;
    Ok(stdout.flush()?)
}

/// For a document that is written in pieces.
pub fn writer() -> Box<dyn io::Write> {
    Box::new(io::BufWriter::new(io::stdout()))
}

/// Shows what clap says of the arguments: help and version on stdout, mistakes on stderr.
pub fn usage(error: &clap::Error) -> Exit {
    let exit = if error.use_stderr() {
        Exit::Usage
    } else {
        Exit::Ok
    };
    match error.print() {
        Ok(()) if error.use_stderr() || check().is_ok() => exit,
        _ => Exit::Output,
    }
}
