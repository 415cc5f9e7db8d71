//! The process that starts programs, one call at a time.

use std::io;
use std::io::Write as _;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::Pid;

use crate::descendants;
use crate::forked_child;
use crate::limits::ResourceLimits;
use crate::protocol::{ReaperReply, ReaperRequest};
use crate::reaper_call::{ReaperAction, ReaperCall};
use crate::sandbox::{PreparedSandbox, ProgramSandbox, ReaperSandboxes};
use crate::signal_fd::SignalFd;
use crate::spawn::{SpawnRequest, spawn};

/// What a reaper process needs to serve calls.
pub(crate) struct Reaper {
    pub(crate) socket: UnixStream,
    pub(crate) signals: SignalFd,
}

impl Reaper {
    pub(crate) fn new(socket: UnixStream, signals: SignalFd) -> Self {
        Self { socket, signals }
    }

    /// Serves calls until the host closes the socket.
    pub(crate) fn serve(self) -> io::Result<()> {
        let mut sandboxes = ReaperSandboxes::default();
        while let Some((request, descriptors)) = ReaperRequest::receive(&self.socket)? {
            // Requests for the previous call may arrive late; ignore them.
            let ReaperRequest::Start(mut spawn_request) = request else {
                continue;
            };
            let sandbox = match prepare_sandbox(&mut spawn_request, &mut sandboxes) {
                Ok(sandbox) => sandbox,
                Err(errno) => {
                    self.send_reply(ReaperReply::NotConfined(errno))?;
                    continue;
                }
            };
            match start_program(&spawn_request, sandbox.as_ref(), &descriptors) {
                Err(errno) => {
                    if let Some(mut sandbox) = sandbox {
                        sandbox.remove_unwritten_files();
                    }
                    sandboxes.finish_call(true);
                    self.send_reply(ReaperReply::NotStarted(errno))?;
                }
                Ok(program) => {
                    // The lock of the session's log lasts until nothing of the call is left.
                    let held = descriptors.into_iter().nth(4);
                    let mut call = ReaperCall::new(&self, program, &spawn_request, sandbox);
                    let reported = if spawn_request.reports_pid {
                        self.send_reply(ReaperReply::Started(program.as_raw_nonzero().get()))
                    } else {
                        Ok(())
                    };
                    let action = match reported.and_then(|()| call.run()) {
                        Ok(action) => action,
                        Err(error) => return call.kill_tree().and(Err(error)),
                    };
                    let awaits_next = matches!(action, ReaperAction::AwaitNext);
                    sandboxes.finish_call(awaits_next || descendants::count_living() == 0);
                    drop(held);
                    if let ReaperAction::Quit(pipes) = action {
                        // A process of its own, since others wait for the end of a reaper.
                        if !pipes.is_empty() && matches!(forked_child::fork(), Ok(None)) {
                            discard_output(&pipes);
                        }
                        break;
                    }
                }
            }
        }
        Ok(())
    }

    pub(crate) fn send_reply(&self, reply: ReaperReply) -> io::Result<()> {
        (&self.socket).write_all(&reply.encode())
    }
}

/// Reads what released processes write until all of them have ended or closed the pipes: writing to a pipe that nobody reads
/// would end them.
fn discard_output(pipes: &[OwnedFd]) {
    let mut open: Vec<&OwnedFd> = pipes.iter().collect();
    while !open.is_empty() {
        let watched = open.iter().map(|pipe| PollFd::new(*pipe, PollFlags::IN));
        let _ = poll(&mut watched.collect::<Vec<_>>(), None);
        open.retain(|pipe| {
            let read = rustix::io::read(pipe, &mut [0; 1 << 12]);
            matches!(read, Ok(1..) | Err(Errno::AGAIN | Errno::INTR))
        });
    }
}

/// Prepares the sandbox of a program, if it has one.
///
/// # Errors
/// The operating system's error number. Nothing ran.
fn prepare_sandbox(
    request: &mut SpawnRequest,
    sandboxes: &mut ReaperSandboxes,
) -> Result<Option<PreparedSandbox>, i32> {
    let shape = request.sandbox.as_ref().map(ProgramSandbox::shape);
    if !sandboxes.can_serve(shape) {
        return Err(libc::EINVAL);
    }
    let Some(sandbox) = &request.sandbox else {
        return Ok(None);
    };
    let prepared = sandboxes.prepare(sandbox, &mut request.env);
    prepared
        .map(Some)
        .map_err(|error| error.raw_os_error().unwrap_or(libc::EOPNOTSUPP))
}

/// Starts a program.
///
/// # Errors
/// The operating system's error number. Nothing ran.
fn start_program(
    request: &SpawnRequest,
    sandbox: Option<&PreparedSandbox>,
    descriptors: &[OwnedFd],
) -> Result<Pid, i32> {
    let [stdin, stdout, stderr, status, ..] = descriptors else {
        return Err(libc::EBADF);
    };
    let descriptors = [stdin, stdout, stderr, status].map(OwnedFd::as_fd);
    if request.limits == ResourceLimits::default() && sandbox.is_none() {
        spawn(request, &descriptors)
    } else {
        forked_child::spawn_limited(request, sandbox, &descriptors)
    }
}
