//! A command: a program is started with the call's arguments, fed, listened to, and ended with all its group.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::attempt::{Attempt, End, Written, called_off};
use crate::command::child::{Child, Exit};
use crate::command::pipe_io::Streams;
use crate::command::process_groups::Groups;
use crate::command::spec::Recipe;
use crate::control::Control;
use crate::output::{Output, Tail};
use crate::settings::EngineSettings;
use procfence::Supervisor;
use redact::Mask;
use toolq_core::os::{Environment, Process};
use toolq_core::types::{CommandBacking, CommandInvocation, Ending, Outcome, Tool, Tools};

/// How much of the end of standard error is kept, in bytes.
const STDERR_TAIL: usize = 4 << 10;

/// Runs the commands of a tools.yaml.
#[derive(Debug)]
pub(crate) struct Commands {
    pub(crate) tools: Arc<Tools>,
    pub(crate) environment: Arc<Environment>,
    mask: Arc<Mask>,
    outputs: Option<PathBuf>,
    /// Who starts them; toolq itself where there is none.
    supervisor: Option<Supervisor>,
    /// What runs, to be stopped and resumed.
    groups: Groups,
}

/// Why a program is no longer left to itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Over {
    Exited,
    Late,
    Cancelled,
}

impl Commands {
    pub(crate) fn new(settings: &EngineSettings) -> Self {
        Self {
            tools: Arc::clone(&settings.tools),
            environment: Arc::clone(&settings.environment),
            mask: Arc::clone(&settings.mask),
            outputs: settings.outputs.clone(),
            supervisor: settings
                .supervisor
                .as_deref()
                .and_then(|program| Supervisor::new(program, &Process::current().argument())),
            groups: Groups::default(),
        }
    }

    /// Stops every program that runs.
    pub(crate) fn hold(&self) {
        self.groups.hold();
    }

    /// Lets them go on.
    pub(crate) fn release(&self) {
        self.groups.release();
    }

    /// Ends who starts them.
    pub(crate) fn close(&self) {
        if let Some(supervisor) = &self.supervisor {
            supervisor.close();
        }
    }

    /// Runs one attempt of `command`, which `backing` was filled into.
    pub(crate) async fn run(
        &self,
        command: &CommandInvocation,
        backing: Option<&CommandBacking>,
        attempt: Attempt,
    ) -> End {
        let job = Arc::clone(&attempt.job);
        let tool = &job.accepted.tool;
        let recipe = match Recipe::new(self, (command, backing), &job, &attempt.key) {
            Ok(recipe) => recipe,
            Err(outcome) => return outcome.into(),
        };
        let (mut child, pipes) = match recipe.start(self.supervisor.as_ref()).await {
            Ok(started) => started,
            Err(outcome) => return outcome.into(),
        };
        child.join(&self.groups);
        let output = Output::of_command(tool, self.outputs.as_ref(), &self.mask)
            .metered(attempt.meter.clone());
        let errors = Tail::new(STDERR_TAIL, Arc::clone(&self.mask));
        let voice = attempt.voice.clone();
        let streams = Streams::new(pipes, output, errors, voice, Arc::clone(&self.mask));
        attend(child, streams, &recipe, tool, attempt).await
    }
}

/// Serves a started program to its end.
async fn attend(
    mut child: Child,
    mut streams: Streams,
    recipe: &Recipe<'_>,
    tool: &Tool,
    attempt: Attempt,
) -> End {
    let limit = attempt.limit;
    let over = streams.until(async {
        tokio::select! {
            // Who is done is neither late nor given up.
            biased;
            () = child.exited() => Over::Exited,
            () = attempt.control.sleep(limit.after) => Over::Late,
            () = called_off(attempt.cancel, &attempt.control) => Over::Cancelled,
        }
    });
    let over = over.await;
    if over != Over::Exited {
        let grace = tool.timeout.grace;
        streams
            .until(end(&mut child, grace, &attempt.control))
            .await;
    }
    streams.drain().await;
    let exit = child.close(recipe.leftovers(), &attempt.control).await;
    match (over, exit) {
        (Over::Cancelled, _) => End::midway(Written::new(streams.output, streams.errors.finish())),
        (_, Exit::NotStarted(errno)) => recipe.refused(errno).into(),
        (Over::Exited, exit) => concluded(streams, exit, recipe.success_exit()).into(),
        (Over::Late, _) => {
            let (output, captured) = streams.output.into_text();
            Outcome::TimedOut {
                idle: false,
                limit: limit.named,
                output,
                stderr: streams.errors.finish(),
                captured,
            }
            .into()
        }
    }
}

/// Ends a program, politely, or at once as soon as all is to be over at once.
async fn end(child: &mut Child, grace: Duration, control: &Control) {
    tokio::select! {
        biased;
        () = control.killing() => {}
        () = child.end(grace, control) => return,
    }
    child.end(Duration::ZERO, control).await;
}

/// What a program that ended by itself gives.
fn concluded(streams: Streams, exit: Exit, success: &[i32]) -> Outcome {
    let Exit::Ended { ending, leftovers } = exit else {
        return Outcome::Broken(
            "the program's keeper was killed, and the program with it".to_owned(),
        );
    };
    let mut outcome = result(streams, ending, success);
    if let Some(captured) = outcome.captured_mut() {
        captured.leftovers = leftovers;
    }
    outcome
}

fn result(streams: Streams, ending: Ending, success: &[i32]) -> Outcome {
    if matches!(ending, Ending::Exit(code) if success.contains(&code)) {
        return streams.output.succeed(ending, || streams.errors.finish());
    }
    let (output, captured) = streams.output.into_text();
    let stderr = streams.errors.finish();
    Outcome::Failed {
        output,
        stderr,
        captured,
        ending,
    }
}
