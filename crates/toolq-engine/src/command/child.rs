//! A started program, whether a reaper or toolq itself is its parent.

use std::os::fd::BorrowedFd;
use std::time::Duration;

#[cfg(target_os = "linux")]
use crate::command::supervised_child::SupervisedChild;

use crate::command::direct_child::DirectChild;
use crate::command::process_groups::ProcessGroups;
use crate::control::RunControl;
use toolq_core::types::{CallEnding, Leftovers};

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
