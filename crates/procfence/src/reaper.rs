//! The process that starts programs, one call at a time, and ends all that they have started.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::fs::OpenOptionsExt as _;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::{Pid, Signal};

use crate::descendants;
use crate::forked_child::{self, record_exit};
use crate::program::{ExceededLimit, ProgramExit, ResourceLimits, SpawnRequest};
use crate::protocol::{ReaperReply, ReaperRequest};
use crate::sandbox::PreparedSandbox;
use crate::sandbox::{ProgramSandbox, ReaperSandboxes};
use crate::signal_fd::SignalFd;
use crate::spawn::spawn;
use crate::timing::{
    MAX_HOST_EXIT_GRACE, OUTPUT_DRAIN_INTERVAL, PROCESS_COUNT_INTERVAL, REAPER_KILL_TIMEOUT,
};

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

// Ends the processes of a call: as the host asks, when the host is gone, or at once.

impl ReaperCall<'_> {
    /// Terminates all processes: with SIGTERM first, and with SIGKILL after `grace`.
    pub(crate) fn terminate(&mut self, grace: Duration) -> io::Result<ReaperAction> {
        let leftovers = if self.exit.is_some() {
            descendants::count_living()
        } else {
            0
        };
        if self.exit.is_none()
            && !grace.is_zero()
            && matches!(self.terminate_gracefully(grace)?, ReaperAction::Quit(_))
        {
            return self.terminate_without_host();
        }
        let has_survivors = self.kill_tree()?;
        self.remove_unwritten_files();
        let exit = self.exit.unwrap_or(ProgramExit::Signal(libc::SIGKILL));
        let leftovers = leftovers.try_into().unwrap_or(u32::MAX);
        self.reaper.send_reply(ReaperReply::Terminated {
            exit,
            leftovers,
            has_survivors,
        })?;
        Ok(if has_survivors {
            ReaperAction::Quit(Vec::new())
        } else {
            ReaperAction::AwaitNext
        })
    }

    /// Sends SIGTERM to all processes, then SIGCONT, since a stopped process only reacts to SIGCONT and SIGKILL. If the
    /// call is suspended, SIGCONT is left to its resumption. Returns [`ReaperAction::Quit`] if the host is gone.
    fn terminate_gracefully(&mut self, grace_period: Duration) -> io::Result<ReaperAction> {
        descendants::signal_children(Signal::TERM);
        if !self.stopped {
            descendants::signal_children(Signal::CONT);
        }
        let Reaper { socket, signals } = self.reaper;
        let mut deadline = PausableDeadline::new(grace_period);
        while self.reap_exited() {
            if self.stopped {
                deadline.pause();
            } else {
                deadline.resume();
            }
            if deadline.is_expired() {
                break;
            }
            if signals
                .wait(socket.as_fd(), deadline.poll_timeout())?
                .socket_ready
            {
                match ReaperRequest::receive(socket)? {
                    Some((ReaperRequest::Signal(signal), _)) => self.forward_signal(signal),
                    Some((ReaperRequest::Terminate(_), _)) => break,
                    Some(_) => {}
                    None => return Ok(ReaperAction::Quit(Vec::new())),
                }
            }
        }
        Ok(ReaperAction::AwaitNext)
    }

    /// The host is gone: terminates all processes, with the grace period that the host set for this.
    pub(crate) fn terminate_without_host(&mut self) -> io::Result<ReaperAction> {
        // Leftovers of a program that has exited get no grace period, as usual.
        if self.exit.is_none() {
            let output_drain = OutputDrain::open(self.program);
            descendants::signal_children(Signal::TERM);
            // A suspended call won't be resumed anymore.
            descendants::signal_children(Signal::CONT);
            let deadline = Instant::now() + self.host_exit_grace;
            while self.reap_exited() {
                let remaining = deadline.saturating_duration_since(Instant::now());
                if remaining.is_zero() {
                    break;
                }
                output_drain.discard();
                let wait = remaining.min(OUTPUT_DRAIN_INTERVAL);
                self.reaper.signals.wait_for_child(wait)?;
            }
        }
        self.kill_tree().map(|_| ReaperAction::Quit(Vec::new()))
    }

    /// Sends SIGKILL to all processes, repeatedly, until they are gone or it takes too long. Returns whether any are
    /// left.
    pub(crate) fn kill_tree(&mut self) -> io::Result<bool> {
        let Self {
            reaper,
            program,
            limits,
            exit,
            too_many_processes,
            ..
        } = self;
        descendants::kill_until_gone(
            &reaper.signals,
            REAPER_KILL_TIMEOUT,
            |_| true,
            |child| {
                record_exit(exit, *program, limits, *too_many_processes, child);
            },
        )
    }
}

// The grace period of a program, which is paused while the program is stopped.

/// A deadline that can be paused.
#[derive(Debug)]
struct PausableDeadline {
    /// Time that was left at `running_since`, or when it was paused.
    remaining: Duration,
    /// `None` while it is paused.
    running_since: Option<Instant>,
}

impl PausableDeadline {
    pub(crate) fn new(duration: Duration) -> Self {
        Self {
            remaining: duration,
            running_since: Some(Instant::now()),
        }
    }

    fn pause(&mut self) {
        self.remaining = self.remaining();
        self.running_since = None;
    }

    fn resume(&mut self) {
        self.running_since.get_or_insert_with(Instant::now);
    }

    fn is_expired(&self) -> bool {
        self.remaining().is_zero()
    }

    /// Returns how long to wait for it to expire; `None` while it is paused.
    fn poll_timeout(&self) -> Option<Duration> {
        self.running_since.map(|_| self.remaining())
    }

    fn remaining(&self) -> Duration {
        let elapsed = self.running_since.map(|since| since.elapsed());
        self.remaining.saturating_sub(elapsed.unwrap_or_default())
    }
}

// The other end of a program's output once the host, which read it, is gone.
//
// Without a reader, the first write of the program would fail with SIGPIPE. Many shells report which of their commands
// was terminated, so SIGPIPE would end them before they run their `trap`.

/// The descriptors of a program that write to the host.
const OUTPUT_FDS: [u32; 3] = [1, 2, 3];
/// At most this much is read from each pipe at once.
const MAX_READS: usize = 256;

/// Reads and discards what a program writes.
#[derive(Debug)]
struct OutputDrain(Vec<File>);

impl OutputDrain {
    /// Opens the output of a program for reading. What can't be opened is left out: the program may have exited, have
    /// closed it, or belong to another user.
    pub(crate) fn open(program: Pid) -> Self {
        let open = |number| {
            let path = format!("/proc/{program}/fd/{number}");
            // The program may have replaced it. Only an anonymous pipe can be the host's.
            let target = fs::read_link(&path).ok()?;
            if !target.as_os_str().as_encoded_bytes().starts_with(b"pipe:") {
                return None;
            }
            let mut options = OpenOptions::new();
            options.read(true).custom_flags(libc::O_NONBLOCK);
            options.open(path).ok()
        };
        Self(OUTPUT_FDS.into_iter().filter_map(open).collect())
    }

    /// Discards what has been written, without waiting for more.
    fn discard(&self) {
        let mut buffer = [0; 4096];
        for mut pipe in &self.0 {
            for _ in 0..MAX_READS {
                if !pipe.read(&mut buffer).is_ok_and(|read| read > 0) {
                    break;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::thread::sleep;

    use super::*;

    const TICK: Duration = Duration::from_millis(20);

    /// While toolq is suspended with Ctrl-Z, no timeout or grace period runs.
    #[test]
    fn a_paused_deadline_does_not_run_out() {
        let mut deadline = PausableDeadline::new(3 * TICK);
        deadline.pause();
        let remaining = deadline.remaining();
        sleep(4 * TICK);
        deadline.pause();
        assert_eq!(
            (deadline.poll_timeout(), deadline.remaining()),
            (None, remaining)
        );
        deadline.resume();
        assert!(
            deadline
                .poll_timeout()
                .is_some_and(|rest| rest <= remaining)
        );
        sleep(4 * TICK);
        assert!(deadline.is_expired());
    }
}
