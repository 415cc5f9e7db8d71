//! The process that forks reapers, and kills what outlives one.

use std::collections::BTreeMap;
use std::io::{self, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use rustix::io::DupFlags;
use rustix::process::{
    DumpableBehavior, Pid, Resource, Rlimit, Signal, kill_process, set_child_subreaper,
    set_dumpable_behavior, set_parent_process_death_signal, setrlimit,
};
use serde::{Deserialize, Serialize};

use crate::protocol::{ProgramExit, ReaperReply, receive_with_fds};
use crate::reaper::Reaper;
use crate::signal_fd::SignalFd;
use crate::timing::{ORPHAN_KILL_TIMEOUT, REAPER_EXIT_TIMEOUT, RESUME_INTERVAL};
use crate::{descendants, forked_child, spawn, sys};

/// Size of a request to a supervisor. One that needs less ends with zeros.
const REQUEST_BYTES: usize = 11;

/// Exit code of a supervisor or a reaper that failed.
pub(crate) const FAILURE_EXIT_CODE: u8 = 2;

/// A request of the host to a supervisor.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) enum SupervisorRequest {
    /// Fork a reaper with this number. Its socket is attached.
    SpawnReaper(u64),
    /// Kill this reaper, which doesn't respond.
    KillReaper(u64),
}

impl SupervisorRequest {
    pub(crate) fn encode(self) -> [u8; REQUEST_BYTES] {
        let mut bytes = [0; REQUEST_BYTES];
        // The longest one fits.
        let _ = postcard::to_slice(&self, &mut bytes);
        bytes
    }
}

struct ReaperSupervisor {
    control: OwnedFd,
    signals: SignalFd,
    /// By the number that the host gave them.
    reapers: BTreeMap<u64, Pid>,
    /// Whether orphans are killed.
    strict: bool,
}

/// Runs a supervisor until the host is gone and nothing is left of what it started. If it isn't `strict`, processes
/// that reapers released are left alone.
///
/// # Errors
/// A system call failed, or this process wasn't started by a host.
pub(crate) fn serve(strict: bool) -> io::Result<()> {
    let control = sys::control_socket()?.into();
    // Other processes must not inspect its memory, and no core dump may write it to disk.
    let _ = rustix::thread::set_name(c"reapers");
    resume_at_parent_exit()?;
    sys::resume_periodically(RESUME_INTERVAL)?;
    set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    setrlimit(
        Resource::Core,
        Rlimit {
            current: Some(0),
            maximum: Some(0),
        },
    )?;
    if strict {
        become_subreaper()?;
    }
    let signals = SignalFd::new()?;
    // Before it forks, so that not every reaper has to look them up.
    spawn::find_functions();
    let supervisor = ReaperSupervisor {
        control,
        signals,
        reapers: BTreeMap::new(),
        strict,
    };
    supervisor.serve()
}

/// Replies in place of a reaper that couldn't be forked, so that only its call fails.
fn reply_not_started(socket: OwnedFd, error: &io::Error) {
    let errno = error.raw_os_error().unwrap_or(libc::EAGAIN);
    // If the host has closed the socket, it doesn't need the reply.
    let _ = UnixStream::from(socket).write_all(&ReaperReply::NotStarted(errno).encode());
}

/// Makes this process a child subreaper: orphaned descendants are reparented to it (`PR_SET_CHILD_SUBREAPER`).
fn become_subreaper() -> io::Result<()> {
    Ok(set_child_subreaper(Some(rustix::process::getpid()))?)
}

/// Makes the end of the parent process resume this process, which a program may have stopped (SIGSTOP).
fn resume_at_parent_exit() -> io::Result<()> {
    Ok(set_parent_process_death_signal(Some(Signal::CONT))?)
}

impl ReaperSupervisor {
    fn serve(mut self) -> io::Result<()> {
        loop {
            let wakeup = self.signals.wait(self.control.as_fd(), None)?;
            if wakeup.child_exited {
                self.reap_exited()?;
            }
            if wakeup.socket_ready {
                let mut bytes = [0; REQUEST_BYTES];
                let (read, descriptors) = receive_with_fds(&self.control, &mut bytes)?;
                if read == 0 {
                    return self.shut_down();
                }
                let request = postcard::from_bytes(&bytes);
                match (request, descriptors.into_iter().next()) {
                    (Ok(SupervisorRequest::SpawnReaper(number)), Some(socket)) => {
                        match forked_child::fork() {
                            Ok(None) => self.become_reaper(socket),
                            Ok(Some(reaper)) => {
                                self.reapers.insert(number, reaper);
                            }
                            Err(error) => reply_not_started(socket, &error),
                        }
                    }
                    (Ok(SupervisorRequest::KillReaper(number)), _) => self.kill_reaper(number),
                    _ => {}
                }
            }
        }
    }

    /// Runs this fork as a reaper, and exits without exit handlers: those belong to the supervisor, and for a short call they
    /// take longer than everything else that the reaper does.
    fn become_reaper(self, socket: OwnedFd) -> ! {
        sys::exit_at_once(match self.serve_as_reaper(socket) {
            Ok(()) => 0,
            Err(_) => FAILURE_EXIT_CODE,
        })
    }

    /// Serves calls. The reaper's socket replaces the supervisor's control socket.
    fn serve_as_reaper(self, socket: OwnedFd) -> io::Result<()> {
        let Self {
            mut control,
            signals,
            ..
        } = self;
        rustix::io::dup3(&socket, &mut control, DupFlags::CLOEXEC)?;
        drop(socket);
        // It isn't inherited by a fork.
        resume_at_parent_exit()?;
        become_subreaper()?;
        Reaper::new(UnixStream::from(control), signals).serve()
    }

    fn kill_reaper(&mut self, number: u64) {
        if let Some(reaper) = self.reapers.get(&number) {
            let _ = kill_process(*reaper, Signal::KILL);
        }
    }

    /// Reaps exited children. In strict mode, kills all orphans if one of the children was an orphan or a reaper that
    /// didn't exit cleanly.
    fn reap_exited(&mut self) -> io::Result<()> {
        let Self {
            reapers, signals, ..
        } = self;
        let mut has_orphans = false;
        descendants::reap_exited(signals, |child| {
            let mut entries = reapers.iter();
            let number = entries
                .find(|(_, reaper)| **reaper == child.pid)
                .map(|(number, _)| *number);
            let reaper = number.and_then(|number| reapers.remove(&number));
            has_orphans |= reaper.is_none() || child.exit != ProgramExit::Code(0);
        });
        if has_orphans && self.strict {
            self.kill_orphans(ORPHAN_KILL_TIMEOUT)?;
        }
        Ok(())
    }

    fn kill_orphans(&mut self, timeout: Duration) -> io::Result<()> {
        let reapers: Vec<Pid> = self.reapers.values().copied().collect();
        let mut reaped = Vec::new();
        descendants::kill_until_gone(
            &self.signals,
            timeout,
            |pid| !reapers.contains(&pid),
            |child| reaped.push(child.pid),
        )?;
        self.reapers.retain(|_, reaper| !reaped.contains(reaper));
        Ok(())
    }

    /// The host is gone. Waits for the reapers, which notice it as well, and kills what they leave.
    fn shut_down(mut self) -> io::Result<()> {
        let started = Instant::now();
        // A program may have stopped its reaper.
        for reaper in self.reapers.values() {
            let _ = kill_process(*reaper, Signal::CONT);
        }
        while !self.reapers.is_empty() && started.elapsed() < REAPER_EXIT_TIMEOUT {
            self.signals
                .wait_for_child(REAPER_EXIT_TIMEOUT.saturating_sub(started.elapsed()))?;
            self.reap_exited()?;
        }
        if self.strict {
            self.reapers.clear();
            // Nothing comes after this process, so it doesn't give up.
            self.kill_orphans(Duration::MAX)?;
        }
        Ok(())
    }
}
