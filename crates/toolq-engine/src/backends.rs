use crate::agent::Agents;
use crate::attempt::{Attempt, End, Runner, Work};
use crate::command::Commands;
use crate::control::Suspend;
use crate::http::Requests;
use crate::settings::EngineSettings;
use std::sync::Arc;
use toolq_core::types::{Backing, Invocation, Outcome};

/// The backings of tools.yaml.
pub(crate) struct Backings {
    commands: Commands,
    requests: Requests,
    agents: Agents,
}

impl Backings {
    pub(crate) fn new(settings: &EngineSettings) -> Self {
        Self {
            commands: Commands::new(settings),
            requests: Requests::new(settings),
            agents: Agents::new(settings),
        }
    }

    async fn back(&self, attempt: Attempt) -> End {
        let job = Arc::clone(&attempt.job);
        let accepted = &job.accepted;
        if attempt.probe {
            return match (&accepted.probe, &accepted.tool.probe) {
                (Some(probe), backing) => self.commands.run(probe, backing.as_ref(), attempt).await,
                (None, _) => Outcome::NoBacking.into(),
            };
        }
        match &accepted.invocation {
            Some(Invocation::Command(command)) => {
                let backing = match &accepted.tool.backing {
                    Some(Backing::Command(backing)) => Some(backing),
                    _ => None,
                };
                self.commands.run(command, backing, attempt).await
            }
            Some(Invocation::Http(request)) => self.requests.run(request, attempt).await,
            Some(Invocation::Agent(task)) => self.agents.run(task, attempt).await,
            Some(Invocation::Completion(result)) => self.agents.complete(result, &attempt).into(),
            None => Outcome::NoBacking.into(),
        }
    }
}

/// Requests are not stopped: who answers them doesn't wait. Only their limits are.
impl Suspend for Backings {
    fn suspend(&self) {
        self.commands.hold();
    }

    fn resume(&self) {
        self.commands.release();
    }
}

impl Runner for Backings {
    fn run(&self, attempt: Attempt) -> Work<'_> {
        Box::pin(self.back(attempt))
    }

    fn close(&self) {
        self.commands.close();
    }
}
