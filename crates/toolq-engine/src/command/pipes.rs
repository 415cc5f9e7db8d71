//! The four pipes of a command, made before it starts: all that can fail does so while nothing runs.

use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd};

use bytes::Bytes;
use rustix::io::{Errno, fcntl_dupfd_cloexec, ioctl_fionbio};
use tokio::net::unix::pipe::{Receiver, Sender};

/// The first descriptor that doesn't become one of the child's when it is put in its place.
const ABOVE_CHILDS: i32 = 4;

/// Our ends.
#[derive(Debug)]
pub(crate) struct Pipes {
    pub(crate) stdin: Option<Feed>,
    pub(crate) stdout: Receiver,
    pub(crate) stderr: Receiver,
    pub(crate) status: Receiver,
}

/// The child's ends, in the order of its descriptors.
#[derive(Debug)]
pub(crate) struct ChildEnds([OwnedFd; 4]);

/// What the child has yet to read.
#[derive(Debug)]
pub(crate) struct Feed {
    pub(crate) pipe: Sender,
    pub(crate) rest: Bytes,
}

impl Pipes {
    /// Makes the pipes and puts as much of `stdin` into its own as fits there. All that can fail does so here, before
    /// anything runs.
    pub(crate) fn new(stdin: &[u8]) -> io::Result<(Self, ChildEnds)> {
        let (their_stdin, stdin) = feed(stdin)?;
        let (stdout, their_stdout) = drain_pipe()?;
        let (stderr, their_stderr) = drain_pipe()?;
        let (status, their_status) = drain_pipe()?;
        let ours = Self {
            stdin,
            stdout,
            stderr,
            status,
        };
        Ok((
            ours,
            ChildEnds([their_stdin, their_stdout, their_stderr, their_status]),
        ))
    }
}

impl ChildEnds {
    pub(crate) fn descriptors(&self) -> [BorrowedFd<'_>; 4] {
        self.0.each_ref().map(OwnedFd::as_fd)
    }
}

/// A pipe to the child's standard input. What fits into it is written at once, without waiting for anybody.
fn feed(input: &[u8]) -> io::Result<(OwnedFd, Option<Feed>)> {
    let (theirs, ours) = pipe()?;
    ioctl_fionbio(&ours, true)?;
    let mut written = 0;
    while written < input.len() {
        match rustix::io::write(&ours, &input[written..]) {
            Ok(bytes) => written += bytes,
            Err(Errno::INTR) => {}
            Err(_) => break,
        }
    }
    let rest = &input[written..];
    if rest.is_empty() {
        return Ok((above_childs(theirs)?, None));
    }
    let rest = Bytes::copy_from_slice(rest);
    let pipe = Sender::from_owned_fd_unchecked(ours)?;
    Ok((above_childs(theirs)?, Some(Feed { pipe, rest })))
}

/// A pipe from the child.
fn drain_pipe() -> io::Result<(Receiver, OwnedFd)> {
    let (ours, theirs) = pipe()?;
    ioctl_fionbio(&ours, true)?;
    Ok((
        Receiver::from_owned_fd_unchecked(ours)?,
        above_childs(theirs)?,
    ))
}

/// A pipe whose ends no child inherits: the end to read, the end to write.
fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    #[cfg(not(target_vendor = "apple"))]
    let ends = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
    #[cfg(target_vendor = "apple")]
    let ends = {
        let ends = rustix::pipe::pipe()?;
        for end in [&ends.0, &ends.1] {
            rustix::io::fcntl_setfd(end, rustix::io::FdFlags::CLOEXEC)?;
        }
        ends
    };
    Ok(ends)
}

/// The same descriptor under a number that the child's own don't have, so that putting them in their place overwrites
/// none that is still needed.
fn above_childs(descriptor: OwnedFd) -> io::Result<OwnedFd> {
    if descriptor.as_raw_fd() >= ABOVE_CHILDS {
        return Ok(descriptor);
    }
    Ok(fcntl_dupfd_cloexec(&descriptor, ABOVE_CHILDS)?)
}
