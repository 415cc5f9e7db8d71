//! A call as its reaper sees it: the program runs, its descendants are tracked, and in the end no process is left.

use std::io;
use std::os::fd::AsFd as _;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};

use crate::deadline::PausableDeadline;
use crate::descendants;
use crate::exit::{ExceededLimit, ProgramExit};
use crate::forked_child::ReapedChild;
use crate::limits::ResourceLimits;
use crate::output_drain::OutputDrain;
use crate::protocol::{ReaperReply, ReaperRequest};
use crate::reaper::Reaper;
use crate::spawn::SpawnRequest;
use crate::timing::{
    MAX_HOST_EXIT_GRACE, OUTPUT_DRAIN_INTERVAL, PROCESS_COUNT_INTERVAL, REAPER_KILL_TIMEOUT,
};

/// A call whose program was started.
pub(crate) struct ReaperCall<'k> {
    reaper: &'k Reaper,
    program: Pid,
    limits: ResourceLimits,
    /// The time between SIGTERM and SIGKILL if the host is gone.
    host_exit_grace: Duration,
    /// How the program ended, once it was reaped.
    exit: Option<ProgramExit>,
    /// The limit on the number of processes was exceeded.
    too_many_processes: bool,
    /// The processes were stopped and not resumed yet.
    stopped: bool,
}

/// What a reaper does after a call.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ReaperAction {
    AwaitNext,
    Quit,
}

impl<'k> ReaperCall<'k> {
    pub(crate) fn new(reaper: &'k Reaper, program: Pid, request: &SpawnRequest) -> Self {
        Self {
            reaper,
            program,
            limits: request.limits,
            host_exit_grace: request.host_exit_grace.min(MAX_HOST_EXIT_GRACE),
            exit: None,
            too_many_processes: false,
            stopped: false,
        }
    }

    /// Serves the call until none of its processes is left, or they were released.
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
                    Some((ReaperRequest::Release, _)) => return Ok(ReaperAction::Quit),
                    None => return self.terminate_without_host(),
                }
            }
            self.enforce_process_limit()?;
        }
    }

    /// Sends a signal to the processes of the call.
    fn forward_signal(&mut self, signal: i32) {
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
        match self.exit {
            Some(exit) if was_running => self
                .reaper
                .send_reply(ReaperReply::Exited { exit, tree_is_gone })
                .map(|()| tree_is_gone),
            // The host knows that processes were left, and will request their end.
            _ => Ok(false),
        }
    }

    /// Reaps exited children. Returns whether any are left.
    fn reap_exited(&mut self) -> bool {
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

    /// Terminates all processes: with SIGTERM first, and with SIGKILL after `grace`.
    fn terminate(&mut self, grace: Duration) -> io::Result<ReaperAction> {
        let leftovers = if self.exit.is_some() {
            descendants::count_living()
        } else {
            0
        };
        if self.exit.is_none()
            && !grace.is_zero()
            && self.terminate_gracefully(grace)? == ReaperAction::Quit
        {
            return self.terminate_without_host();
        }
        let has_survivors = self.kill_tree()?;
        let exit = self.exit.unwrap_or(ProgramExit::Signal(libc::SIGKILL));
        let leftovers = leftovers.try_into().unwrap_or(u32::MAX);
        self.reaper.send_reply(ReaperReply::Terminated {
            exit,
            leftovers,
            has_survivors,
        })?;
        Ok(if has_survivors {
            ReaperAction::Quit
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
                    None => return Ok(ReaperAction::Quit),
                }
            }
        }
        Ok(ReaperAction::AwaitNext)
    }

    /// The host is gone: terminates all processes, with the grace period that the host set for this.
    fn terminate_without_host(&mut self) -> io::Result<ReaperAction> {
        // Leftovers of a program that has exited get no grace period, as usual.
        if self.exit.is_none() {
            let output_drain = OutputDrain::open(self.program);
            descendants::signal_children(Signal::TERM);
            // A suspended call won't be resumed any more.
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
        self.kill_tree().map(|_| ReaperAction::Quit)
    }

    /// Sends SIGKILL to all processes, repeatedly, until none is left or it takes too long. Returns whether any are
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

/// If `child` is the program, records how it ended, or which limit killed it.
fn record_exit(
    exit: &mut Option<ProgramExit>,
    program: Pid,
    limits: &ResourceLimits,
    too_many_processes: bool,
    child: ReapedChild,
) {
    if child.pid != program {
        return;
    }
    let cpu_exhausted = limits.cpu.is_some_and(|limit| child.cpu_time >= limit);
    *exit = Some(match child.exit {
        ProgramExit::Signal(_) if too_many_processes => {
            ProgramExit::LimitExceeded(ExceededLimit::Processes)
        }
        ProgramExit::Signal(libc::SIGXCPU) if limits.cpu.is_some() => {
            ProgramExit::LimitExceeded(ExceededLimit::Cpu)
        }
        ProgramExit::Signal(libc::SIGKILL) if cpu_exhausted => {
            ProgramExit::LimitExceeded(ExceededLimit::Cpu)
        }
        ProgramExit::Signal(libc::SIGXFSZ) if limits.file_size.is_some() => {
            ProgramExit::LimitExceeded(ExceededLimit::FileSize)
        }
        other => other,
    });
}
