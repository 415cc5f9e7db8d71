//! A program that toolq started itself, because there is no supervisor: waits for it, signals its process group, and
//! reaps it. Processes that leave the group aren't tracked.
//!
//! The program is reaped last. Until then its pid, which is also that of its group, can't be reused, so no signal can
//! hit an unrelated process.

use std::os::fd::OwnedFd;
use std::thread;
use std::time::Duration;

use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, WaitOptions, kill_process_group, waitid, waitpid,
};
use tokio::io::unix::AsyncFd;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::timeout;

use crate::command::child::ChildExit;
use crate::command::process_groups::{GroupHandle, ProcessGroups, Registration};
use crate::control::RunControl;
use crate::timing::{DIRECT_KILL_TIMEOUT, EXIT_POLL_INTERVAL};
use toolq_core::types::CallEnding;

/// A program that leads its own session and process group. Dropping it kills the group.
#[derive(Debug)]
pub(crate) struct DirectChild {
    pid: Pid,
    /// Readable when the program has exited. `None` on systems other than Linux, or if toolq is out of descriptors: the
    /// program is running already, so that can't be an error.
    pidfd: Option<AsyncFd<OwnedFd>>,
    reaped: bool,
    registration: Option<Registration>,
}

impl DirectChild {
    pub(crate) fn new(pid: Pid) -> Self {
        Self {
            pid,
            pidfd: procfence::watch_for_exit(pid),
            reaped: false,
            registration: None,
        }
    }

    /// Registers the program with `groups`, so that it is suspended and resumed with the others.
    pub(crate) fn register(&mut self, groups: &ProcessGroups) {
        self.registration = Some(groups.register(GroupHandle::Direct(self.pid)));
    }

    /// Waits until the program has exited, without reaping it.
    pub(crate) async fn wait_for_exit(&self) {
        if let Some(pidfd) = &self.pidfd
            && pidfd.readable().await.is_ok()
        {
            return;
        }
        let mut children = signal(SignalKind::child());
        while !self.has_exited() {
            let child_signal = async {
                match &mut children {
                    Ok(children) => children.recv().await,
                    Err(_) => std::future::pending().await,
                }
            };
            let _ = timeout(EXIT_POLL_INTERVAL, child_signal).await;
        }
    }

    fn has_exited(&self) -> bool {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
        !matches!(waitid(WaitId::Pid(self.pid), options), Ok(None))
    }

    /// Sends a signal to the group. It isn't an error if no process is left to receive it.
    fn signal_group(&self, signal: Signal) {
        if !self.reaped {
            let _ = kill_process_group(self.pid, signal);
        }
    }

    /// Terminates the group: with SIGTERM first, so that it can clean up, and with SIGKILL after `grace`.
    pub(crate) async fn terminate(&self, grace: Duration, control: &RunControl) {
        self.signal_group(Signal::TERM);
        // A stopped program only reacts to SIGCONT and SIGKILL.
        self.signal_group(Signal::CONT);
        let has_exited = tokio::select! {
            biased;
            () = self.wait_for_exit() => true,
            () = control.sleep(grace) => false,
        };
        self.signal_group(Signal::KILL);
        if !has_exited {
            let _ = timeout(DIRECT_KILL_TIMEOUT, self.wait_for_exit()).await;
        }
    }

    /// Returns the program's process id.
    pub(crate) fn pid(&self) -> i32 {
        self.pid.as_raw_nonzero().get()
    }

    /// Kills the rest of the group, then reaps the program. In this order, because its pid may be reused afterwards.
    pub(crate) fn close(&mut self) -> ChildExit {
        self.signal_group(Signal::KILL);
        match self.reap() {
            Some(ending) => ChildExit::Exited {
                ending,
                leftovers: 0,
            },
            None => ChildExit::Unknown,
        }
    }

    /// Reaps the program. Returns how it ended, or `None` if it hasn't exited or its exit status is lost.
    fn reap(&mut self) -> Option<CallEnding> {
        self.registration = None;
        let (_, status) = waitpid(Some(self.pid), WaitOptions::NOHANG).ok()??;
        self.reaped = true;
        let code = status.exit_status().map(CallEnding::ExitCode);
        code.or_else(|| status.terminating_signal().map(CallEnding::Signal))
    }
}

impl Drop for DirectChild {
    fn drop(&mut self) {
        self.signal_group(Signal::KILL);
        if !self.reaped && self.reap().is_none() {
            let pid = self.pid;
            let reaper = thread::Builder::new().stack_size(64 << 10);
            // If no thread can be started, the program stays a zombie until toolq exits.
            let _ = reaper.spawn(move || waitpid(Some(pid), WaitOptions::empty()));
        }
    }
}
