//! Waits for the reader of stdout, but not forever once toolq is shutting down.

use std::io;
use std::os::fd::AsFd;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

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

/// From now on, a reader that doesn't read is abandoned after a few seconds.
pub(super) fn limit_waiting() {
    ENDING_SINCE.get_or_init(Instant::now);
}

/// Waits until `stdout` takes [`PIECE_BYTES`]. Returns `false` if it should no longer be waited for.
pub(super) fn wait_until_writable(stdout: &impl AsFd) -> io::Result<bool> {
    let waiting_since = Instant::now();
    loop {
        let mut polled = [PollFd::new(stdout, PollFlags::OUT)];
        match poll(&mut polled, Some(&CHECK_INTERVAL)) {
            Ok(0) | Err(Errno::INTR) => {}
            Ok(_) => return Ok(true),
            Err(error) => return Err(error.into()),
        }
        let is_over =
            |ending: &Instant| waiting_since.max(*ending).elapsed() >= STALLED_READER_TIMEOUT;
        if ENDING_SINCE.get().is_some_and(is_over) {
            return Ok(false);
        }
    }
}
