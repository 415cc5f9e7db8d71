//! Everything that goes to stdout goes through this file. Results are written as whole documents or lines, so stdout never ends in
//! half a JSON value. Only a long plan is written as it is made.

use std::future::pending;
use std::io::{self, IsTerminal as _, Write as _};
use std::os::fd::AsFd as _;

use tokio::io::Interest;
use tokio::net::unix::pipe::Sender;

use crate::output::stalled_reader::{self, PIECE_BYTES};
use crate::output::{stdout_pipe, stdout_probe};
use toolq_core::exit::{CommandError, Exit};

/// Why stdout can't be written.
#[derive(Debug)]
pub enum StdoutError {
    /// The reader has closed the pipe.
    Closed,
    /// toolq is shutting down, and the reader keeps the pipe open without reading.
    Stalled,
    /// Any other failure, such as a full disk.
    Failed(io::Error),
}

impl From<io::Error> for StdoutError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::Closed,
            _ => Self::Failed(error),
        }
    }
}

/// A closed pipe was the reader's choice, so it prints no message.
impl From<StdoutError> for CommandError {
    fn from(lost: StdoutError) -> Self {
        match lost {
            StdoutError::Closed => Self::silent(Exit::Output),
            StdoutError::Stalled => Self::new(
                Exit::Output,
                "stdout can't be written: its reader keeps it open, but doesn't read",
            ),
            StdoutError::Failed(error) => {
                Self::new(Exit::Output, format!("stdout can't be written: {error}"))
            }
        }
    }
}

/// Returns whether stdout is a terminal.
pub fn is_terminal() -> bool {
    io::stdout().is_terminal()
}

/// Returns the width in columns if stdout is a terminal.
pub fn width() -> Option<usize> {
    let (width, _) = terminal_size::terminal_size_of(io::stdout())?;
    Some(usize::from(width.0))
}

/// Waits until the reader of stdout is gone. Never returns if that can't be observed, as for a file. Must be called
/// within a tokio runtime.
pub async fn wait_until_closed() {
    let stdout = io::stdout().as_fd().try_clone_to_owned();
    // Unchecked, because the descriptor is only watched: it doesn't have to be nonblocking.
    match stdout.and_then(Sender::from_owned_fd_unchecked) {
        Ok(watched) if watched.ready(Interest::ERROR).await.is_ok() => {}
        _ => pending().await,
    }
}

/// Checks that stdout exists, before a command does any work for it.
///
/// # Errors
/// toolq was started without one.
pub fn check_open() -> Result<(), StdoutError> {
    if stdout_probe::started_without_stdout() {
        return Err(StdoutError::Failed(rustix::io::Errno::BADF.into()));
    }
    Ok(())
}

/// Gives up a reader that keeps the pipe open without reading, from now on. Until then, writing waits for it.
pub fn limit_waiting() {
    stalled_reader::limit_waiting();
}

/// Writes `text` and a newline, and flushes.
///
/// # Errors
/// The pipe is closed, the reader was given up, the write failed, or toolq was started without a stdout.
pub fn write_line(text: &str) -> Result<(), StdoutError> {
    if text.len() < PIECE_BYTES {
        return write_lines([text, "\n"].concat().as_bytes());
    }
    // The answer to a long turn isn't copied for its newline.
    write_lines(text.as_bytes())?;
    write_lines(b"\n")
}

/// Writes whole lines, each with its newline, and flushes.
///
/// # Errors
/// The pipe is closed, the reader was given up, the write failed, or toolq was started without a stdout.
pub fn write_lines(lines: &[u8]) -> Result<(), StdoutError> {
    check_open()?;
    let mut stdout = io::stdout().lock();
    stdout.flush()?;
    if stdout_pipe::write_all(&stdout, lines)? {
        Ok(())
    } else {
        Err(StdoutError::Stalled)
    }
}

/// Returns a buffered writer, for a document that is written in parts.
pub fn buffered_writer() -> Box<dyn io::Write + Send> {
    Box::new(io::BufWriter::new(io::stdout()))
}

/// Prints a message of clap: help and version go to stdout, errors to stderr.
///
/// # Errors
/// Help or version can't be written.
pub fn print_clap_message(message: &clap::Error) -> Result<Exit, StdoutError> {
    let printed = message.print().and_then(|()| io::stdout().flush());
    if message.use_stderr() {
        // There is no place left to report that stderr can't be written.
        return Ok(Exit::Usage);
    }
    check_open()?;
    printed?;
    Ok(Exit::Ok)
}
