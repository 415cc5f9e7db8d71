//! Waits for the readers of stdout and stderr. Once toolq is shutting down, it gives up a reader of stdout that has stalled.

use std::io;
use std::os::fd::AsFd;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::task::block_in_place;

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
