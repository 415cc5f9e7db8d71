//! A started program, whoever keeps it.

use std::time::Duration;

#[cfg(target_os = "linux")]
use crate::command::supervised_child::Kept;

use crate::command::direct_child::Alone;
use crate::command::process_groups::Groups;
use crate::control::Control;
use toolq_core::types::{Ending, Leftovers};

/// A program that leads a session and group of its own. Dropped, it is killed, with all that is known to belong to it.
#[derive(Debug)]
pub(crate) enum Child {
    /// With all that comes of it.
    #[cfg(target_os = "linux")]
    Kept(Kept),
    /// With its group.
    Alone(Alone),
}

/// How a program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// It never ran: the system's error number.
    NotStarted(i32),
    Ended {
        ending: Ending,
        /// How many processes it had left running, which were ended.
        leftovers: u32,
    },
    /// Nobody knows, since who kept it was killed.
    Unknown,
}

impl Child {
    /// Waits until the program itself has ended. Can be given up and taken up again.
    pub(crate) async fn exited(&mut self) {
        match self {
            #[cfg(target_os = "linux")]
            Self::Kept(kept) => kept.exited().await,
            Self::Alone(alone) => alone.exited().await,
        }
    }

    /// From here on it is stopped and resumed with the others.
    pub(crate) fn join(&mut self, groups: &Groups) {
        match self {
            #[cfg(target_os = "linux")]
            Self::Kept(kept) => kept.join(groups),
            Self::Alone(alone) => alone.join(groups),
        }
    }

    /// Ends it: politely, so that it can tidy up, and after `grace` surely. The time is of `control`.
    pub(crate) async fn end(&mut self, grace: Duration, control: &Control) {
        match self {
            #[cfg(target_os = "linux")]
            Self::Kept(kept) => kept.end(grace, control).await,
            Self::Alone(alone) => alone.end(grace, control).await,
        }
    }

    /// Closes the books of a program that has ended or was ended: what it left running is ended, or let go.
    pub(crate) async fn close(self, leftovers: Leftovers, control: &Control) -> Exit {
        match self {
            #[cfg(target_os = "linux")]
            Self::Kept(kept) => kept.close(leftovers, control).await,
            Self::Alone(mut alone) => alone.close(),
        }
    }
}
