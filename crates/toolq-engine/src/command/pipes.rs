//! The four pipes of a command. They are created before it starts, so that anything that can fail does so while nothing
//! runs yet.

use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd};

use bytes::Bytes;
use rustix::io::{Errno, fcntl_dupfd_cloexec, ioctl_fionbio};
use tokio::net::unix::pipe::{Receiver, Sender};

use crate::command::spec::ProgramInput;

/// The lowest descriptor that isn't overwritten when the child's descriptors are set up.
const FIRST_NON_CHILD_FD: i32 = 4;

/// Our ends of the pipes.
#[derive(Debug)]
pub(crate) struct ParentEnds {
    pub(crate) stdin: Option<StdinFeed>,
    pub(crate) stdout: Receiver,
    pub(crate) stderr: Receiver,
    pub(crate) status: Receiver,
}

/// The child's ends of the pipes, in the order of its descriptors.
#[derive(Debug)]
pub(crate) struct ChildEnds([OwnedFd; 4]);

/// Input that doesn't fit into the stdin pipe yet.
#[derive(Debug)]
pub(crate) struct StdinFeed {
    pub(crate) pipe: Sender,
    pub(crate) remaining: Bytes,
}

impl ParentEnds {
    /// Creates the pipes, and writes as much of `stdin` into its pipe as fits.
    pub(crate) fn new(stdin: ProgramInput<'_>) -> io::Result<(Self, ChildEnds)> {
        let (their_stdin, stdin) = stdin_pipe(stdin)?;
        let (stdout, their_stdout) = output_pipe()?;
        let (stderr, their_stderr) = output_pipe()?;
        let (status, their_status) = output_pipe()?;
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

/// Creates the pipe to the child's stdin, and writes as much of the input as fits without blocking.
fn stdin_pipe(input: ProgramInput<'_>) -> io::Result<(OwnedFd, Option<StdinFeed>)> {
    let (input, stays_open) = match input {
        ProgramInput::Bytes(bytes) => (bytes, false),
        ProgramInput::Open => (&b""[..], true),
    };
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
    let remaining = &input[written..];
    if remaining.is_empty() && !stays_open {
        return Ok((dup_above_child_fds(theirs)?, None));
    }
    let remaining = Bytes::copy_from_slice(remaining);
    let pipe = Sender::from_owned_fd_unchecked(ours)?;
    Ok((
        dup_above_child_fds(theirs)?,
        Some(StdinFeed { pipe, remaining }),
    ))
}

/// Creates a pipe from the child.
fn output_pipe() -> io::Result<(Receiver, OwnedFd)> {
    let (ours, theirs) = pipe()?;
    ioctl_fionbio(&ours, true)?;
    Ok((
        Receiver::from_owned_fd_unchecked(ours)?,
        dup_above_child_fds(theirs)?,
    ))
}

/// Creates a pipe whose ends are close-on-exec. Returns its read end and its write end.
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

/// Moves a descriptor out of the range that the child's descriptors will overwrite.
fn dup_above_child_fds(descriptor: OwnedFd) -> io::Result<OwnedFd> {
    if descriptor.as_raw_fd() >= FIRST_NON_CHILD_FD {
        return Ok(descriptor);
    }
    Ok(fcntl_dupfd_cloexec(&descriptor, FIRST_NON_CHILD_FD)?)
}
