//! The signals of a supervisor: it hears of children that end, and nobody's TERM ends it before its work is done.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use crate::sys;

/// All signals that can be held off are; that a child has ended is read from a descriptor.
pub(crate) struct Signals(OwnedFd);

/// What there is to do.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Awake {
    /// The socket has something to read, or its other side is gone.
    pub(crate) said: bool,
    /// A child may have ended.
    pub(crate) ended: bool,
}

impl Signals {
    /// Holds them off from now on, also in processes forked later.
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self(sys::hold_signals()?))
    }

    /// Sleeps until something is said on `socket`, a child ends, or the time is over.
    pub(crate) fn wait(&self, socket: BorrowedFd<'_>, time: Option<Duration>) -> io::Result<Awake> {
        self.sleep(Some(socket), time)
    }

    /// Sleeps until a child ends or the time is over.
    pub(crate) fn wait_for_child(&self, time: Duration) -> io::Result<Awake> {
        self.sleep(None, Some(time))
    }

    fn sleep(&self, socket: Option<BorrowedFd<'_>>, time: Option<Duration>) -> io::Result<Awake> {
        let time = time.and_then(|time| Timespec::try_from(time).ok());
        let first = PollFd::from_borrowed_fd(self.0.as_fd(), PollFlags::IN);
        let second = socket.map(|socket| PollFd::from_borrowed_fd(socket, PollFlags::IN));
        let mut watched: Vec<PollFd<'_>> = [first].into_iter().chain(second).collect();
        match poll(&mut watched, time.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let ready = |at: usize| {
            watched
                .get(at)
                .is_some_and(|descriptor| !descriptor.revents().is_empty())
        };
        let awake = Awake {
            ended: ready(0),
            said: ready(1),
        };
        if awake.ended {
            // One reading takes as many signals as could wait; which child it was, only `wait` says.
            let _ = rustix::io::read(&self.0, &mut [0; 1024]);
        }
        Ok(awake)
    }
}
