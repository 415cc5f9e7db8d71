//! The signals of supervisors and reapers: they are notified when a child exits, and no SIGTERM can end them before
//! their work is done.

use std::cell::Cell;
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use crate::sys;

/// Blocks every signal that can be blocked, and reads SIGCHLD from a descriptor.
pub(crate) struct SignalFd {
    descriptor: OwnedFd,
    /// Children have exited whose signal was already read.
    exits_expected: Cell<bool>,
}

/// Why a wait returned. If both are false, it timed out or was interrupted.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Wakeup {
    /// The socket has something to read, or its peer is gone.
    pub(crate) socket_ready: bool,
    /// A child may have exited.
    pub(crate) child_exited: bool,
}

impl SignalFd {
    /// Blocks signals from now on, also in processes forked later.
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self {
            descriptor: sys::block_signals()?,
            exits_expected: Cell::new(false),
        })
    }

    /// Makes the next wait return at once, because children that have exited weren't reaped yet.
    pub(crate) fn expect_exits(&self) {
        self.exits_expected.set(true);
    }

    /// Waits until `socket` is readable, a child exits, or `timeout` has elapsed.
    pub(crate) fn wait(
        &self,
        socket: BorrowedFd<'_>,
        timeout: Option<Duration>,
    ) -> io::Result<Wakeup> {
        self.poll_fds(Some(socket), timeout)
    }

    /// Waits until a child exits or `timeout` has elapsed.
    pub(crate) fn wait_for_child(&self, timeout: Duration) -> io::Result<Wakeup> {
        self.poll_fds(None, Some(timeout))
    }

    fn poll_fds(
        &self,
        socket: Option<BorrowedFd<'_>>,
        timeout: Option<Duration>,
    ) -> io::Result<Wakeup> {
        let exits_expected = self.exits_expected.take();
        let timeout = if exits_expected {
            Some(Duration::ZERO)
        } else {
            timeout
        };
        let timeout = timeout.and_then(|time| Timespec::try_from(time).ok());
        let first = PollFd::from_borrowed_fd(self.descriptor.as_fd(), PollFlags::IN);
        let second = socket.map(|socket| PollFd::from_borrowed_fd(socket, PollFlags::IN));
        let mut watched: Vec<PollFd<'_>> = [first].into_iter().chain(second).collect();
        match poll(&mut watched, timeout.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let ready = |at: usize| {
            watched
                .get(at)
                .is_some_and(|descriptor| !descriptor.revents().is_empty())
        };
        let wakeup = Wakeup {
            child_exited: ready(0) || exits_expected,
            socket_ready: ready(1),
        };
        if ready(0) {
            // One read takes every signal that may be pending. Which child exited is found out by reaping.
            let _ = rustix::io::read(&self.descriptor, &mut [0; 1024]);
        }
        Ok(wakeup)
    }
}
