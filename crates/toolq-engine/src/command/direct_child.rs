//! A program that toolq itself has started, where there is no supervisor: waiting for it, signalling its group, reaping
//! it. What leaves the group is not followed.
//!
//! It is reaped last. Until then its process id, which is also its group's, can't be given to anybody else, so that no
//! signal ever reaches a stranger.

use std::os::fd::OwnedFd;
use std::thread;
use std::time::Duration;

use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, WaitOptions, kill_process_group, waitid, waitpid,
};
use tokio::io::unix::AsyncFd;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::timeout;

use crate::command::child::Exit;
use crate::command::process_groups::{Groups, Leader, Member};
use crate::control::Control;
use toolq_core::types::Ending;

/// How long a killed program may take to be gone. One that the system can't end is left to a thread.
const KILL_PATIENCE: Duration = Duration::from_millis(500);
/// How often an end is looked for where nothing tells of it.
const LOOK: Duration = Duration::from_millis(20);

/// A program that leads a session and group of its own. Dropping it kills the group.
#[derive(Debug)]
pub(crate) struct Alone {
    pid: Pid,
    /// Readable when the program has ended. None on other systems than Linux, and where toolq is out of descriptors:
    /// the program runs already, so that this can't be an error.
    pidfd: Option<AsyncFd<OwnedFd>>,
    reaped: bool,
    member: Option<Member>,
}

impl Alone {
    pub(crate) fn new(pid: Pid) -> Self {
        Self {
            pid,
            pidfd: procfence::watch(pid),
            reaped: false,
            member: None,
        }
    }

    /// From here on it is stopped and resumed with the others.
    pub(crate) fn join(&mut self, groups: &Groups) {
        self.member = Some(groups.join(Leader::Group(self.pid)));
    }

    /// Waits until the program has ended. It is not reaped.
    pub(crate) async fn exited(&self) {
        if let Some(pidfd) = &self.pidfd
            && pidfd.readable().await.is_ok()
        {
            return;
        }
        let mut children = signal(SignalKind::child());
        while !self.has_exited() {
            let told = async {
                match &mut children {
                    Ok(children) => children.recv().await,
                    Err(_) => std::future::pending().await,
                }
            };
            let _ = timeout(LOOK, told).await;
        }
    }

    fn has_exited(&self) -> bool {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
        !matches!(waitid(WaitId::Pid(self.pid), options), Ok(None))
    }

    /// Sends a signal to all of the group. That nobody is left to get it is no error.
    fn signal_group(&self, signal: Signal) {
        if !self.reaped {
            let _ = kill_process_group(self.pid, signal);
        }
    }

    /// Ends it: politely, so that it can tidy up, and after `grace` surely.
    pub(crate) async fn end(&self, grace: Duration, control: &Control) {
        self.signal_group(Signal::TERM);
        // A stopped program can't take any other signal than this and KILL.
        self.signal_group(Signal::CONT);
        let gone = tokio::select! {
            biased;
            () = self.exited() => true,
            () = control.sleep(grace) => false,
        };
        self.signal_group(Signal::KILL);
        if !gone {
            let _ = timeout(KILL_PATIENCE, self.exited()).await;
        }
    }

    /// Ends the rest of the group and waits for the program, in this order: from then on its number may be somebody
    /// else's.
    pub(crate) fn close(&mut self) -> Exit {
        self.signal_group(Signal::KILL);
        match self.reap() {
            Some(ending) => Exit::Ended {
                ending,
                leftovers: 0,
            },
            None => Exit::Unknown,
        }
    }

    /// How it ended; none where it has not, or nobody knows.
    fn reap(&mut self) -> Option<Ending> {
        self.member = None;
        let (_, status) = waitpid(Some(self.pid), WaitOptions::NOHANG).ok()??;
        self.reaped = true;
        let code = status.exit_status().map(Ending::Exit);
        code.or_else(|| status.terminating_signal().map(Ending::Signal))
    }
}

impl Drop for Alone {
    fn drop(&mut self) {
        self.signal_group(Signal::KILL);
        if !self.reaped && self.reap().is_none() {
            let pid = self.pid;
            let reaper = thread::Builder::new().stack_size(64 << 10);
            // Where no thread can be had, it stays a zombie until toolq ends.
            let _ = reaper.spawn(move || waitpid(Some(pid), WaitOptions::empty()));
        }
    }
}
