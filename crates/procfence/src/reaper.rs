//! The process that starts programs, one call at a time.

use std::io::{self, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::{Pid, Signal};

use crate::protocol::{
    ExceededLimit, ProgramExit, ReaperReply, ReaperRequest, ResourceLimits, record_exit,
};
use crate::sandbox::{PreparedSandbox, ProgramSandbox, ReaperSandboxes};
use crate::signal_fd::SignalFd;
use crate::spawn::{SpawnRequest, spawn};
use crate::timing::{MAX_HOST_EXIT_GRACE, PROCESS_COUNT_INTERVAL};
use crate::{descendants, forked_child};

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
                    let mut call = ReaperCall {
                        reaper: &self,
                        program,
                        limits: spawn_request.limits,
                        host_exit_grace: spawn_request.host_exit_grace.min(MAX_HOST_EXIT_GRACE),
                        exit: None,
                        too_many_processes: false,
                        stopped: false,
                        sandbox,
                    };
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

// A call as its reaper sees it: the program runs, its descendants are tracked, and in the end no process is left.

/// A call whose program was started.
pub(crate) struct ReaperCall<'k> {
    pub(crate) reaper: &'k Reaper,
    pub(crate) program: Pid,
    pub(crate) limits: ResourceLimits,
    /// The time between SIGTERM and SIGKILL if the host is gone.
    pub(crate) host_exit_grace: Duration,
    /// How the program ended, once it was reaped.
    pub(crate) exit: Option<ProgramExit>,
    /// The limit on the number of processes was exceeded.
    pub(crate) too_many_processes: bool,
    /// The processes were stopped and not resumed yet.
    pub(crate) stopped: bool,
    sandbox: Option<PreparedSandbox>,
}

/// What a reaper does after a call.
#[derive(Debug)]
pub(crate) enum ReaperAction {
    AwaitNext,
    /// Quits, but leaves a process that reads from these pipes, if there are any.
    Quit(Vec<OwnedFd>),
}

impl ReaperCall<'_> {
    /// Serves the call until all of its processes are gone, or were released.
    pub(crate) fn run(&mut self) -> io::Result<ReaperAction> {
        let Reaper { socket, signals } = self.reaper;
        loop {
            let poll_timeout = self
                .limits
                .processes
                .filter(|_| !self.too_many_processes)
                .map(|_| PROCESS_COUNT_INTERVAL);
            let wakeup = signals.wait(socket.as_fd(), poll_timeout)?;
            if wakeup.child_exited && self.report_exit()? {
                return Ok(ReaperAction::AwaitNext);
            }
            if wakeup.socket_ready {
                match ReaperRequest::receive(socket)? {
                    Some((ReaperRequest::Signal(signal), _)) => self.forward_signal(signal),
                    Some((ReaperRequest::Terminate(grace), _)) => return self.terminate(grace),
                    Some((ReaperRequest::Start(_), _)) => {}
                    Some((ReaperRequest::Release, pipes)) => {
                        return Ok(ReaperAction::Quit(pipes));
                    }
                    None => return self.terminate_without_host(),
                }
            }
            self.enforce_process_limit()?;
        }
    }

    /// Sends a signal to the processes of the call.
    pub(crate) fn forward_signal(&mut self, signal: i32) {
        let Some(signal) = Signal::from_named_raw(signal) else {
            return;
        };
        descendants::signal_children(signal);
        match signal {
            Signal::STOP => self.stopped = true,
            Signal::CONT => self.stopped = false,
            _ => {}
        }
    }

    /// Reaps exited children, and reports the exit of the program. Returns whether the call is done: the program has
    /// just exited and left no processes.
    fn report_exit(&mut self) -> io::Result<bool> {
        let was_running = self.exit.is_none();
        let tree_is_gone = !self.reap_exited();
        self.remove_unwritten_files();
        match self.exit {
            Some(exit) if was_running => self
                .reaper
                .send_reply(ReaperReply::Exited { exit, tree_is_gone })
                .map(|()| tree_is_gone),
            // The host knows that processes were left, and will request their end.
            _ => Ok(false),
        }
    }

    /// If the program has failed, removes the files that were created for it to write.
    pub(crate) fn remove_unwritten_files(&mut self) {
        if let (Some(sandbox), Some(exit)) = (&mut self.sandbox, self.exit)
            && exit != ProgramExit::Code(0)
        {
            sandbox.remove_unwritten_files();
        }
    }

    /// Reaps exited children. Returns whether any are left.
    pub(crate) fn reap_exited(&mut self) -> bool {
        descendants::reap_exited(&self.reaper.signals, |child| {
            record_exit(
                &mut self.exit,
                self.program,
                &self.limits,
                self.too_many_processes,
                child,
            );
        })
    }

    /// Kills all processes if there are more than the limit allows.
    fn enforce_process_limit(&mut self) -> io::Result<()> {
        if let (None, Some(max)) = (self.exit, self.limits.processes)
            && descendants::count_living() > max
        {
            self.too_many_processes = true;
            self.kill_tree()?;
            let exit = *self
                .exit
                .get_or_insert(ProgramExit::LimitExceeded(ExceededLimit::Processes));
            self.reaper.send_reply(ReaperReply::Exited {
                exit,
                tree_is_gone: false,
            })?;
        }
        Ok(())
    }
}
