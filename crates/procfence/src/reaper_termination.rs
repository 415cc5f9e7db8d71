//! Ends the processes of a call: as the host asks, when the host is gone, or at once.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _};
use std::os::fd::AsFd as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};

use crate::descendants;
use crate::protocol::{ProgramExit, ReaperReply, ReaperRequest, record_exit};
use crate::reaper::{Reaper, ReaperAction, ReaperCall};
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
