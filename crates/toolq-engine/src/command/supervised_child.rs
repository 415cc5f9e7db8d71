//! A program that a keeper has started.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout;

use crate::command::child::Exit;
use crate::command::process_groups::{Groups, Leader, Member};
use crate::control::Control;
use procfence::{Descriptors, ExceededLimit, Keeper, Keepers, Order, ProgramExit, Reply, Request};
use toolq_core::types::{Ending, Leftovers, Limit};

/// How long a keeper may take for its part, beside the grace of a program. It itself looks for less than that whether
/// those that it killed are gone. A program that has stopped its keeper is answered so much later.
const PATIENCE: Duration = Duration::from_millis(500);

/// How many keepers are asked, where one after another was killed meanwhile.
const TRIES: usize = 8;

/// Dropped before its end, the keeper ends everything at once.
#[derive(Debug)]
pub(crate) struct Kept {
    keepers: Arc<Keepers>,
    /// None when it was given back, or doesn't answer.
    keeper: Option<Arc<Keeper>>,
    member: Option<Member>,
    /// What is known of the end.
    heard: Option<Reply>,
}

impl Kept {
    /// Has a keeper start a program with these descriptors.
    ///
    /// # Errors
    /// None could be had: nothing ran.
    pub(crate) async fn start(
        keepers: &Arc<Keepers>,
        order: &Order,
        descriptors: &Descriptors<'_>,
    ) -> std::io::Result<Self> {
        let request = Request::start(order);
        for _ in 0..TRIES {
            let keeper = keepers.take()?;
            let asked = timeout(PATIENCE, keeper.ask(&request, descriptors)).await;
            match asked {
                Ok(Ok(())) => {
                    return Ok(Self {
                        keepers: Arc::clone(keepers),
                        keeper: Some(keeper),
                        member: None,
                        heard: None,
                    });
                }
                // It was killed while it waited. It starts nothing before it has heard all.
                Ok(Err(_)) => {}
                Err(_) => {
                    keepers.kill(&keeper);
                    break;
                }
            }
        }
        Err(rustix::io::Errno::AGAIN.into())
    }

    /// Waits until the program itself has ended, was not started, or its keeper is gone.
    pub(crate) async fn exited(&mut self) {
        if self.heard.is_none() {
            self.hear().await;
        }
    }

    /// From here on it is stopped and resumed with the others.
    pub(crate) fn join(&mut self, groups: &Groups) {
        let leader = self
            .keeper
            .as_ref()
            .map(|keeper| Leader::Kept(Arc::clone(keeper)));
        self.member = leader.map(|leader| groups.join(leader));
    }

    /// Ends everything, politely at first; the time for that is of `control`. A keeper that doesn't answer is ended itself.
    pub(crate) async fn end(&mut self, grace: Duration, control: &Control) {
        if self.is_over() {
            return;
        }
        if let Some(keeper) = &self.keeper {
            keeper.tell(&Request::End(grace));
        }
        let over = async {
            while self.keeper.is_some() && !self.is_over() {
                self.hear().await;
            }
        };
        let is_over = tokio::select! {
            biased;
            () = over => true,
            () = control.sleep(grace.saturating_add(PATIENCE)) => false,
        };
        if !is_over {
            self.give_up();
        }
    }

    /// Ends or lets go what is left.
    pub(crate) async fn close(mut self, leftovers: Leftovers, control: &Control) -> Exit {
        self.member = None;
        if !self.is_over() {
            if leftovers == Leftovers::Allow {
                self.let_go();
            } else {
                self.end(Duration::ZERO, control).await;
            }
        }
        // A keeper takes room itself, which somebody else may need now.
        let leaves = match self.heard {
            Some(Reply::Gone { leaves, .. }) => leaves,
            Some(Reply::NotStarted(errno)) => matches!(errno, libc::EAGAIN | libc::ENOMEM),
            _ => false,
        };
        if self.is_over()
            && !leaves
            && let Some(keeper) = self.keeper.take()
        {
            self.keepers.give_back(keeper);
        }
        match self.heard {
            Some(Reply::NotStarted(errno)) => Exit::NotStarted(errno),
            Some(Reply::Exited { ending, .. }) => Exit::Ended {
                ending: ending_of(ending),
                leftovers: 0,
            },
            Some(Reply::Gone {
                ending, leftovers, ..
            }) => Exit::Ended {
                ending: ending_of(ending),
                leftovers,
            },
            None => Exit::Unknown,
        }
    }

    fn let_go(&mut self) {
        if let Some(keeper) = self.keeper.take() {
            keeper.tell(&Request::Release);
        }
    }

    /// Whether nothing of it is left.
    fn is_over(&self) -> bool {
        match self.heard {
            Some(Reply::NotStarted(_) | Reply::Gone { .. }) => true,
            Some(Reply::Exited { alone, .. }) => alone,
            None => false,
        }
    }

    async fn hear(&mut self) {
        let Some(keeper) = &self.keeper else { return };
        if let Ok(reply) = keeper.hear().await {
            self.heard = Some(reply);
        } else {
            self.keeper = None;
            self.keepers.mourn().await;
        }
    }

    fn give_up(&mut self) {
        if let Some(keeper) = self.keeper.take() {
            self.keepers.kill(&keeper);
        }
    }
}

/// The end that a reaper reports, as the outcome of a call has it.
fn ending_of(exit: ProgramExit) -> Ending {
    match exit {
        ProgramExit::Code(code) => Ending::Exit(code),
        ProgramExit::Signal(signal) => Ending::Signal(signal),
        ProgramExit::LimitExceeded(ExceededLimit::Cpu) => Ending::Limit(Limit::Cpu),
        ProgramExit::LimitExceeded(ExceededLimit::Processes) => Ending::Limit(Limit::Processes),
        ProgramExit::LimitExceeded(ExceededLimit::FileSize) => Ending::Limit(Limit::FileSize),
    }
}
