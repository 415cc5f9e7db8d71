//! A program that a reaper started.

use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout;

use crate::command::child::ChildExit;
use crate::command::process_groups::{GroupHandle, ProcessGroups, Registration};
use crate::control::RunControl;
use crate::timing::REAPER_TIMEOUT;
use procfence::{
    ChildDescriptors, ExceededLimit, ProgramExit, ReaperClient, ReaperPool, ReaperReply,
    ReaperRequest, SpawnRequest,
};
use toolq_core::types::{CallEnding, Leftovers, LimitKind};

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
