//! Everything that goes to stdout goes through this file. Results are written as whole documents or lines, so stdout never ends in
//! half a JSON value.

use std::future::pending;
#[cfg(target_os = "linux")]
use std::io::IoSlice;
use std::io::{self, IsTerminal as _, Write as _};
use std::os::fd::AsFd;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FileType, fstat};
use rustix::io::Errno;
#[cfg(target_os = "linux")]
use rustix::io::{ReadWriteFlags, pwritev2};
use tokio::io::Interest;
use tokio::net::unix::pipe::Sender;
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::task::block_in_place;

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

impl From<StdoutError> for io::Error {
    fn from(lost: StdoutError) -> Self {
        match lost {
            StdoutError::Closed => io::ErrorKind::BrokenPipe.into(),
            StdoutError::Stalled => io::ErrorKind::TimedOut.into(),
            StdoutError::Failed(error) => error,
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
    if started_without_stdout() {
        return Err(StdoutError::Failed(Errno::BADF.into()));
    }
    Ok(())
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
    if write_all(&stdout, lines)? {
        Ok(())
    } else {
        Err(StdoutError::Stalled)
    }
}

/// Writes `bytes` to `stdout` past any buffer. Returns `false` if its reader was given up before it took everything.
fn write_all(stdout: &impl AsFd, mut bytes: &[u8]) -> io::Result<bool> {
    // A file has no reader to wait for, so it takes everything at once.
    let is_file = FileType::from_raw_mode(fstat(stdout)?.st_mode).is_file();
    let piece_bytes = if is_file { usize::MAX } else { PIECE_BYTES };
    while !bytes.is_empty() {
        if let Some(written) = write_at_once(stdout, bytes) {
            bytes = &bytes[written..];
            continue;
        }
        if !wait_until_writable(stdout)? {
            return Ok(false);
        }
        let piece = &bytes[..bytes.len().min(piece_bytes)];
        bytes = &bytes[write_piece(stdout, piece)?..];
    }
    Ok(true)
}

/// Writes what a pipe has room for at this moment, however much that is. Returns `None` if it has no room, or if that can't be known.
/// Without it, each 4 KiB wake the reader, and `plan` of a long recording falls behind jq.
#[cfg(target_os = "linux")]
fn write_at_once(stdout: &impl AsFd, bytes: &[u8]) -> Option<usize> {
    // This offset stands for the current position.
    let written = pwritev2(
        stdout,
        &[IoSlice::new(bytes)],
        u64::MAX,
        ReadWriteFlags::NOWAIT,
    );
    written.ok().filter(|&written| written > 0)
}

#[cfg(not(target_os = "linux"))]
fn write_at_once(_: &impl AsFd, _: &[u8]) -> Option<usize> {
    None
}

/// Writes as much of `piece` as `stdout` takes now that it is ready, and returns how much that was.
fn write_piece(stdout: &impl AsFd, piece: &[u8]) -> io::Result<usize> {
    match rustix::io::write(stdout, piece) {
        Ok(0) => Err(io::ErrorKind::WriteZero.into()),
        Ok(written) => Ok(written),
        // Another process may have made the output nonblocking, and a third one may have been faster.
        Err(Errno::INTR | Errno::AGAIN) => Ok(0),
        Err(error) => Err(error.into()),
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

// Detects that toolq was started without a stdout, as with `>&-`. Rust's runtime opens /dev/null in its place before
// `main`, and results would be lost silently. So this probe runs before the runtime does. It changes nothing, but it
// needs unsafe code.

static STARTED_WITHOUT_STDOUT: AtomicBool = AtomicBool::new(false);

/// Called by the system's loader before `main`.
// SAFETY: the section is a list of such functions, and this one is called once, before any thread exists.
#[cfg_attr(
    target_vendor = "apple",
    unsafe(link_section = "__DATA,__mod_init_func")
)]
#[cfg_attr(not(target_vendor = "apple"), unsafe(link_section = ".init_array"))]
#[used]
static PROBE_BEFORE_MAIN: extern "C" fn() = probe_stdout;

extern "C" fn probe_stdout() {
    // SAFETY: `F_GETFD` only reads the flags of a descriptor, and reports an invalid one as an error.
    let flags = unsafe { libc::fcntl(libc::STDOUT_FILENO, libc::F_GETFD) };
    STARTED_WITHOUT_STDOUT.store(flags == -1, Ordering::Relaxed);
}

/// Returns whether stdout was missing when the program started.
fn started_without_stdout() -> bool {
    STARTED_WITHOUT_STDOUT.load(Ordering::Relaxed)
}

// Waits for the readers of stdout and stderr. Once toolq is shutting down, it gives up a reader of stdout that has stalled.

/// What a pipe takes without blocking once it is ready: its `PIPE_BUF`.
pub(super) const PIECE_BYTES: usize = if cfg!(target_os = "linux") { 4096 } else { 512 };
/// How long the reader may take for one piece once toolq is shutting down.
const STALLED_READER_TIMEOUT: Duration = Duration::from_secs(5);
/// How often to check whether toolq is shutting down.
const CHECK_INTERVAL: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 100_000_000,
};

static ENDING_SINCE: OnceLock<Instant> = OnceLock::new();

/// Gives up a reader that keeps the pipe open without reading, from now on. Until then, writing waits for it.
pub fn limit_waiting() {
    ENDING_SINCE.get_or_init(Instant::now);
}

/// Waits until `stdout` takes [`PIECE_BYTES`]. Returns `false` if it should no longer be waited for.
pub(super) fn wait_until_writable(stdout: &impl AsFd) -> io::Result<bool> {
    if is_writable(stdout, Timespec::default())? {
        return Ok(true);
    }
    let waiting_since = Instant::now();
    without_worker(|| {
        loop {
            if is_writable(stdout, CHECK_INTERVAL)? {
                return Ok(true);
            }
            let is_over =
                |ending: &Instant| waiting_since.max(*ending).elapsed() >= STALLED_READER_TIMEOUT;
            if ENDING_SINCE.get().is_some_and(is_over) {
                return Ok(false);
            }
        }
    })
}

/// Waits until `stderr` takes [`PIECE_BYTES`], however long that takes. After an error, writing fails as well.
pub(super) fn wait_until_stderr_writable(stderr: &impl AsFd) {
    if let Ok(false) = is_writable(stderr, Timespec::default()) {
        without_worker(|| while let Ok(false) = is_writable(stderr, CHECK_INTERVAL) {});
    }
}

/// Returns whether `output` takes [`PIECE_BYTES`] within `timeout`.
fn is_writable(output: &impl AsFd, timeout: Timespec) -> io::Result<bool> {
    let mut polled = [PollFd::new(output, PollFlags::OUT)];
    match poll(&mut polled, Some(&timeout)) {
        Ok(ready) => Ok(ready > 0),
        Err(Errno::INTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Calls `wait`, which blocks. A worker of the runtime hands its tasks to another thread first, so that timeouts still end
/// calls.
fn without_worker<T>(wait: impl FnOnce() -> T) -> T {
    let flavor = Handle::try_current().map(|runtime| runtime.runtime_flavor());
    match flavor {
        Ok(RuntimeFlavor::MultiThread) => block_in_place(wait),
        _ => wait(),
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::io::Read;
    use std::os::unix::net::UnixStream;
    use std::thread;

    use rustix::fs::{CWD, Mode, OFlags, fcntl_getfl, fcntl_setfl, mkfifoat};

    use super::*;

    /// More than a pipe holds, and no multiple of a piece.
    fn long_text() -> Vec<u8> {
        (0..=250).cycle().take(1_000_003).collect()
    }

    /// Writes to `writer` while a thread reads `reader`, and checks what arrives. With `flags`, somebody has changed the
    /// descriptor.
    fn expect_everything(mut reader: impl Read + Send + 'static, writer: impl AsFd, flags: OFlags) {
        fcntl_setfl(&writer, fcntl_getfl(&writer).unwrap() | flags).unwrap();
        let read = thread::spawn(move || {
            let mut bytes = Vec::new();
            reader.read_to_end(&mut bytes).map(|_| bytes)
        });
        assert!(write_all(&writer, &long_text()).unwrap());
        drop(writer);
        assert!(read.join().unwrap().unwrap() == long_text());
    }

    #[test]
    fn a_pipe_takes_everything_in_order() {
        for flags in [OFlags::empty(), OFlags::NONBLOCK] {
            let (reader, writer) = io::pipe().unwrap();
            expect_everything(reader, writer, flags);
        }
    }

    /// The kernel can't write to a named pipe without waiting.
    #[test]
    fn a_named_pipe_takes_everything_in_order() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("pipe");
        mkfifoat(CWD, &path, Mode::RUSR | Mode::WUSR).unwrap();
        for flags in [OFlags::empty(), OFlags::NONBLOCK] {
            let open = path.clone();
            let reader = thread::spawn(move || File::open(open).unwrap());
            let writer = File::options().write(true).open(&path).unwrap();
            expect_everything(reader.join().unwrap(), writer, flags);
        }
    }

    #[test]
    fn a_socket_takes_everything_in_order() {
        for flags in [OFlags::empty(), OFlags::NONBLOCK] {
            let (reader, writer) = UnixStream::pair().unwrap();
            reader.set_nonblocking(false).unwrap();
            expect_everything(reader, writer, flags);
        }
    }

    #[test]
    fn a_file_is_appended_to() {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), "first").unwrap();
        let appending = File::options().append(true).open(file.path()).unwrap();
        assert!(write_all(&appending, &long_text()).unwrap());
        assert!(fs::read(file.path()).unwrap() == [b"first", long_text().as_slice()].concat());
    }

    #[test]
    fn a_closed_pipe_is_an_error() {
        let (reader, writer) = io::pipe().unwrap();
        drop(reader);
        let error = write_all(&writer, &long_text()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_full_device_is_an_error() {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let error = write_all(&full, b"text").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    }
}
