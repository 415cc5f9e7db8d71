//! A started program, whether a reaper or toolq itself is its parent.

use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, WaitOptions, kill_process_group, waitid, waitpid,
};
use tokio::io::unix::AsyncFd;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::timeout;

use crate::control::{GroupHandle, ProcessGroups, Registration, RunControl};
use crate::timing::{DIRECT_KILL_TIMEOUT, EXIT_POLL_INTERVAL, REAPER_TIMEOUT};
use procfence::{
    ChildDescriptors, ExceededLimit, ProgramExit, ReaperClient, ReaperPool, ReaperReply,
    ReaperRequest, SpawnRequest,
};
#[cfg(target_os = "linux")]
use toolq_core::types::{CallEnding, Leftovers, LimitKind};

/// A program that leads its own session and process group. Dropping it kills the program and all processes that are
/// known to belong to it.
#[derive(Debug)]
pub(crate) enum ChildProcess {
    /// Started by a reaper, which knows all of its descendants.
    #[cfg(target_os = "linux")]
    Supervised(SupervisedChild),
    /// Started by toolq, which only knows its process group.
    Direct(DirectChild),
}

/// How a program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ChildExit {
    /// It never ran. Holds the operating system's error number.
    NotStarted(i32),
    /// It never ran, because it couldn't be confined. Holds the operating system's error number.
    NotConfined(i32),
    /// It ran and ended.
    Exited {
        ending: CallEnding,
        /// How many processes it left running, which were killed.
        leftovers: u32,
    },
    /// Unknown, since its reaper was killed or its exit status is lost.
    Unknown,
}

impl ChildProcess {
    /// Waits until the program itself has exited. Cancel safe.
    pub(crate) async fn wait_for_exit(&mut self) {
        match self {
            #[cfg(target_os = "linux")]
            Self::Supervised(supervised) => supervised.wait_for_exit().await,
            Self::Direct(direct) => direct.wait_for_exit().await,
        }
    }

    /// Returns the process id of a server's program, once it runs. Cancel safe.
    pub(crate) async fn wait_for_pid(&mut self) -> Option<i32> {
        match self {
            #[cfg(target_os = "linux")]
            Self::Supervised(supervised) => supervised.wait_for_pid().await,
            Self::Direct(direct) => Some(direct.pid()),
        }
    }

    /// Registers the program with `groups`, so that it is suspended and resumed with the others.
    pub(crate) fn register(&mut self, groups: &ProcessGroups) {
        match self {
            #[cfg(target_os = "linux")]
            Self::Supervised(supervised) => supervised.register(groups),
            Self::Direct(direct) => direct.register(groups),
        }
    }

    /// Terminates the program: with SIGTERM first, so that it can clean up, and with SIGKILL after `grace`, as measured
    /// by the clock of `control`.
    pub(crate) async fn terminate(&mut self, grace: Duration, control: &RunControl) {
        match self {
            #[cfg(target_os = "linux")]
            Self::Supervised(supervised) => supervised.terminate(grace, control).await,
            Self::Direct(direct) => direct.terminate(grace, control).await,
        }
    }

    /// Leaves alone what an exited program left running, which may go on writing to `outputs`.
    pub(crate) async fn release(&mut self, outputs: &[BorrowedFd<'_>]) {
        match self {
            #[cfg(target_os = "linux")]
            Self::Supervised(supervised) => supervised.release(outputs).await,
            // Its group is killed.
            Self::Direct(_) => {}
        }
    }

    /// Reaps an exited program, and kills the processes that it left, unless that is allowed and they were released.
    pub(crate) async fn close(self, leftovers: Leftovers, control: &RunControl) -> ChildExit {
        match self {
            #[cfg(target_os = "linux")]
            Self::Supervised(supervised) => supervised.close(leftovers, control).await,
            Self::Direct(mut direct) => direct.close(),
        }
    }
}

// A program that toolq started itself, because there is no supervisor: waits for it, signals its process group, and
// reaps it. Processes that leave the group aren't tracked.
//
// The program is reaped last. Until then its pid, which is also that of its group, can't be reused, so no signal can
// hit an unrelated process.

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

// A program that a reaper started.

/// How many reapers to try if idle ones turn out to have been killed.
const MAX_START_ATTEMPTS: usize = 8;

/// A program and its reaper. If it is dropped early, the reaper kills everything at once.
#[derive(Debug)]
pub(crate) struct SupervisedChild {
    pool: Arc<ReaperPool>,
    /// `None` when it was returned to the pool, or is gone, or doesn't respond.
    reaper: Option<Arc<ReaperClient>>,
    registration: Option<Registration>,
    /// The program's process id, once the reaper has reported it.
    pid: Option<i32>,
    /// What the reaper last reported about the program's end.
    last_reply: Option<ReaperReply>,
}

impl SupervisedChild {
    /// Requests a reaper to start a program with these descriptors.
    ///
    /// # Errors
    /// No reaper is available. Nothing ran.
    pub(crate) async fn start(
        pool: &Arc<ReaperPool>,
        spawn_request: &SpawnRequest,
        descriptors: &ChildDescriptors<'_>,
    ) -> std::io::Result<Self> {
        let request = ReaperRequest::Start(Box::new(spawn_request.clone())).encode();
        let descriptors: Vec<BorrowedFd<'_>> =
            descriptors.iter().copied().chain(pool.held()).collect();
        for _ in 0..MAX_START_ATTEMPTS {
            let reaper = pool.take_reaper(spawn_request)?;
            let sent = timeout(REAPER_TIMEOUT, reaper.send(&request, &descriptors)).await;
            match sent {
                Ok(Ok(())) => {
                    return Ok(Self {
                        pool: Arc::clone(pool),
                        reaper: Some(reaper),
                        registration: None,
                        pid: None,
                        last_reply: None,
                    });
                }
                // The reaper was killed while idle. It can't have started anything: it never got the whole request.
                Ok(Err(_)) => {}
                Err(_) => {
                    pool.kill_reaper(&reaper);
                    break;
                }
            }
        }
        Err(rustix::io::Errno::AGAIN.into())
    }

    /// Waits until the program itself has exited, failed to start, or lost its reaper.
    pub(crate) async fn wait_for_exit(&mut self) {
        while self.last_reply.is_none() && self.reaper.is_some() {
            self.receive_reply().await;
        }
    }

    /// Waits until the reaper has said whether the program runs. Returns the program's process id, if it was to be reported.
    /// Cancel safe.
    pub(crate) async fn wait_for_pid(&mut self) -> Option<i32> {
        while self.pid.is_none() && self.last_reply.is_none() && self.reaper.is_some() {
            self.receive_reply().await;
        }
        self.pid
    }

    /// Registers the program with `groups`, so that it is suspended and resumed with the others.
    pub(crate) fn register(&mut self, groups: &ProcessGroups) {
        let handle = self
            .reaper
            .as_ref()
            .map(|reaper| GroupHandle::Supervised(Arc::clone(reaper)));
        self.registration = handle.map(|handle| groups.register(handle));
    }

    /// Terminates everything, with SIGTERM first and SIGKILL after `grace`, as measured by the clock of `control`. A
    /// reaper that doesn't respond in time is killed itself.
    pub(crate) async fn terminate(&mut self, grace: Duration, control: &RunControl) {
        if self.is_finished() {
            return;
        }
        if let Some(reaper) = &self.reaper {
            reaper.try_send(&ReaperRequest::Terminate(grace));
        }
        let finished = async {
            while self.reaper.is_some() && !self.is_finished() {
                self.receive_reply().await;
            }
        };
        let is_finished = tokio::select! {
            biased;
            () = finished => true,
            () = control.sleep(grace.saturating_add(REAPER_TIMEOUT)) => false,
        };
        if !is_finished {
            self.kill_reaper();
        }
    }

    /// Kills what is left, unless that is allowed, and returns the reaper to the pool.
    pub(crate) async fn close(mut self, leftovers: Leftovers, control: &RunControl) -> ChildExit {
        self.registration = None;
        if !self.is_finished() && leftovers != Leftovers::Allow {
            self.terminate(Duration::ZERO, control).await;
        }
        // If the system is out of resources, don't keep an idle reaper, which takes some itself.
        let must_discard = match self.last_reply {
            Some(ReaperReply::Terminated { has_survivors, .. }) => has_survivors,
            Some(ReaperReply::NotStarted(errno) | ReaperReply::NotConfined(errno)) => {
                matches!(errno, libc::EAGAIN | libc::ENOMEM)
            }
            _ => false,
        };
        if self.is_finished()
            && !must_discard
            && let Some(reaper) = self.reaper.take()
        {
            self.pool.return_reaper(reaper);
        }
        match self.last_reply {
            Some(ReaperReply::NotStarted(errno)) => ChildExit::NotStarted(errno),
            Some(ReaperReply::NotConfined(errno)) => ChildExit::NotConfined(errno),
            Some(ReaperReply::Exited { exit, .. }) => ChildExit::Exited {
                ending: ending_from_exit(exit),
                leftovers: 0,
            },
            Some(ReaperReply::Terminated {
                exit, leftovers, ..
            }) => ChildExit::Exited {
                ending: ending_from_exit(exit),
                leftovers,
            },
            Some(ReaperReply::Started(_)) | None => ChildExit::Unknown,
        }
    }

    /// Leaves alone what the program left running, which may go on writing to `outputs`.
    pub(crate) async fn release(&mut self, outputs: &[BorrowedFd<'_>]) {
        if !self.is_finished()
            && let Some(reaper) = self.reaper.take()
        {
            let request = ReaperRequest::Release.encode();
            // If the reaper doesn't read anymore, its call is ended by other means.
            let _ = timeout(REAPER_TIMEOUT, reaper.send(&request, outputs)).await;
        }
    }

    /// Returns whether no process of the call is left.
    fn is_finished(&self) -> bool {
        match self.last_reply {
            Some(
                ReaperReply::NotStarted(_)
                | ReaperReply::NotConfined(_)
                | ReaperReply::Terminated { .. },
            ) => true,
            Some(ReaperReply::Exited { tree_is_gone, .. }) => tree_is_gone,
            Some(ReaperReply::Started(_)) | None => false,
        }
    }

    async fn receive_reply(&mut self) {
        let Some(reaper) = &self.reaper else { return };
        match reaper.receive_reply().await {
            Ok(ReaperReply::Started(pid)) => self.pid = Some(pid),
            Ok(reply) => self.last_reply = Some(reply),
            Err(_) => {
                self.reaper = None;
                self.pool.on_reaper_killed().await;
            }
        }
    }

    fn kill_reaper(&mut self) {
        if let Some(reaper) = self.reaper.take() {
            self.pool.kill_reaper(&reaper);
        }
    }
}

/// Converts how a program ended, as its reaper reports it.
fn ending_from_exit(exit: ProgramExit) -> CallEnding {
    match exit {
        ProgramExit::Code(code) => CallEnding::ExitCode(code),
        ProgramExit::Signal(signal) => CallEnding::Signal(signal),
        ProgramExit::LimitExceeded(ExceededLimit::Cpu) => CallEnding::LimitExceeded(LimitKind::Cpu),
        ProgramExit::LimitExceeded(ExceededLimit::Processes) => {
            CallEnding::LimitExceeded(LimitKind::Processes)
        }
        ProgramExit::LimitExceeded(ExceededLimit::FileSize) => {
            CallEnding::LimitExceeded(LimitKind::FileSize)
        }
    }
}
