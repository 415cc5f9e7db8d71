//! A call as its reaper sees it: the program runs, its descendants are tracked, and in the end no process is left.

use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::time::Duration;

use rustix::process::{Pid, Signal};

use crate::descendants;
use crate::exit::{ExceededLimit, ProgramExit};
use crate::limits::ResourceLimits;
use crate::program_exit::record_exit;
use crate::protocol::{ReaperReply, ReaperRequest};
use crate::reaper::Reaper;
use crate::sandbox::PreparedSandbox;
use crate::spawn::SpawnRequest;
use crate::timing::{MAX_HOST_EXIT_GRACE, PROCESS_COUNT_INTERVAL};

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

impl<'k> ReaperCall<'k> {
    pub(crate) fn new(
        reaper: &'k Reaper,
        program: Pid,
        request: &SpawnRequest,
        sandbox: Option<PreparedSandbox>,
    ) -> Self {
        Self {
            reaper,
            program,
            limits: request.limits,
            host_exit_grace: request.host_exit_grace.min(MAX_HOST_EXIT_GRACE),
            exit: None,
            too_many_processes: false,
            stopped: false,
            sandbox,
        }
    }

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
