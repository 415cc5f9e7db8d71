//! Ends the processes of a call: as the host asks, when the host is gone, or at once.

use std::io;
use std::os::fd::AsFd as _;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::deadline::PausableDeadline;
use crate::descendants;
use crate::exit::ProgramExit;
use crate::output_drain::OutputDrain;
use crate::program_exit::record_exit;
use crate::protocol::{ReaperReply, ReaperRequest};
use crate::reaper::Reaper;
use crate::reaper_call::{ReaperAction, ReaperCall};
use crate::timing::{OUTPUT_DRAIN_INTERVAL, REAPER_KILL_TIMEOUT};

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
            && self.terminate_gracefully(grace)? == ReaperAction::Quit
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
        self.kill_tree().map(|_| ReaperAction::Quit)
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
