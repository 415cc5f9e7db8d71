//! Runs command backings and starts the programs of servers, with the supervisor that they share.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use crate::attempt::{Attempt, AttemptResult, canceled};
use crate::command::child::{ChildExit, ChildProcess};
use crate::command::pipes::{CommandStreams, ParentEnds};
use crate::command::spec::CommandSpec;
use crate::control::{ProcessGroups, RunControl};
use crate::output::OutputCollector;
use crate::reach::Reach;
use crate::settings::EngineSettings;
use procfence::ReaperPools;
use toolq_core::check::build_server_command;
use toolq_core::os::ProcessIdentity;
use toolq_core::types::{
    Backing, CallEnding, CommandBacking, CommandInvocation, DoubtCause, Leftovers, Outcome,
    OutputKind, ResultContent, ServerConfig, StderrUse, Tool,
};

/// Runs the commands of a tools.yaml.
#[derive(Debug)]
pub(crate) struct CommandRunner {
    pub(crate) settings: Arc<EngineSettings>,
    /// The reapers that start the programs. Without them, toolq starts the programs itself.
    pub(super) reaper_pools: Option<ReaperPools>,
    /// All running programs, so that they can be suspended and resumed.
    pub(super) groups: ProcessGroups,
}

impl CommandRunner {
    pub(crate) fn new(settings: Arc<EngineSettings>, groups: ProcessGroups) -> Self {
        let owner = ProcessIdentity::current().reaper_argument();
        let program = settings.supervisor_program.as_deref();
        let reaper_pools = program.and_then(|program| ReaperPools::new(program, &owner));
        if let (Some(pools), Some(file)) = (&reaper_pools, &settings.held_file) {
            // Without descriptors, no program can be started either.
            let _ = pools.hold(file);
        }
        Self {
            settings,
            reaper_pools,
            groups,
        }
    }

    /// Stops the supervisors.
    pub(crate) fn close(&self) {
        if let Some(reaper_pools) = &self.reaper_pools {
            reaper_pools.close();
        }
    }

    /// Starts the program of a server.
    ///
    /// # Errors
    /// The outcome of the call that needs it, because nothing was started.
    pub(crate) async fn start_server(
        &self,
        program: &CommandBacking,
    ) -> Result<(ChildProcess, ParentEnds), Outcome> {
        let command = build_server_command(program);
        let spec = CommandSpec::for_server(&self.settings, &command, program)?;
        let (mut child, pipes) = spec.start(self.reaper_pools.as_ref()).await?;
        child.register(&self.groups);
        Ok((child, pipes))
    }

    /// Returns the outcome of a call whose server could not be started, for the system's error number.
    pub(crate) fn server_start_failure(&self, server: &ServerConfig, errno: i32) -> Outcome {
        let Some(program) = server.program() else {
            return Outcome::InternalError(format!("{} has no program", server.name));
        };
        let command = build_server_command(program);
        match CommandSpec::for_server(&self.settings, &command, program) {
            Ok(spec) => spec.start_failure(errno),
            Err(outcome) => outcome,
        }
    }

    /// Runs one attempt of `command`, which was rendered from `backing`.
    pub(crate) async fn run(
        &self,
        command: &CommandInvocation,
        backing: Option<&CommandBacking>,
        attempt: Attempt,
    ) -> AttemptResult {
        let job = Arc::clone(&attempt.job);
        let tool = &job.accepted.tool;
        let spec = match CommandSpec::new(&self.settings, (command, backing), &job, &attempt) {
            Ok(spec) => spec,
            Err(outcome) => return outcome.into(),
        };
        let (mut child, pipes) = match spec.start(self.reaper_pools.as_ref()).await {
            Ok(started) => started,
            Err(outcome) => return outcome.into(),
        };
        child.register(&self.groups);
        let (mask, counter) = (&self.settings.mask, &attempt.output_counter);
        let output = OutputCollector::for_command(tool, &self.settings, counter.clone());
        let progress = attempt.progress.clone();
        let streams =
            CommandStreams::new(pipes, output, counter.clone(), progress, Arc::clone(mask));
        run_to_exit(child, streams, &spec, tool, attempt).await
    }
}

// Serves a started program until it ends, times out or is canceled, and makes an outcome of its end.

/// Why waiting for a program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WaitResult {
    Exited,
    TimedOut,
    Canceled,
}

/// Serves the pipes of a started program until it ends, times out or is canceled.
async fn run_to_exit(
    mut child: ChildProcess,
    mut streams: CommandStreams,
    spec: &CommandSpec<'_>,
    tool: &Tool,
    attempt: Attempt,
) -> AttemptResult {
    let limit = attempt.timeout;
    let waiting = streams.pump_until(async {
        tokio::select! {
            // A program that has exited didn't time out and wasn't canceled.
            biased;
            () = child.wait_for_exit() => WaitResult::Exited,
            () = attempt.control.sleep(limit.duration) => WaitResult::TimedOut,
            () = canceled(attempt.cancel, &attempt.control) => WaitResult::Canceled,
        }
    });
    let wait_result = waiting.await;
    let ending = async {
        if wait_result != WaitResult::Exited {
            let termination = terminate(&mut child, tool.timeout.kill_grace, &attempt.control);
            streams.pump_until(termination).await;
        }
        let leaves = spec.leftovers == Leftovers::Allow;
        let is_waited_for = wait_result == WaitResult::Exited && !leaves;
        let limit = is_waited_for.then_some(tool.timeout.kill_grace);
        let was_printing = streams.drain(limit).await;
        if leaves {
            child.release(&streams.outputs()).await;
        }
        let exit = child.close(spec.leftovers, &attempt.control).await;
        (exit, was_printing)
    };
    // What the program printed is in its result even if its reaper doesn't respond.
    let (exit, was_printing) = tokio::select! {
        biased;
        exit = ending => exit,
        () = attempt.control.wait_for_kill_deadline() => {
            return AttemptResult::canceled_while_running(streams.into_output());
        }
    };
    match (wait_result, exit) {
        // Nothing ran, whatever it was canceled for meanwhile.
        (_, ChildExit::NotStarted(errno)) => spec.start_failure(errno).into(),
        (_, ChildExit::NotConfined(errno)) => spec.confinement_failure(errno).into(),
        (WaitResult::Canceled, _) => AttemptResult::canceled_while_running(streams.into_output()),
        (WaitResult::Exited, exit) => {
            let mut outcome = outcome_of_exit(streams, exit, spec.success_codes, tool);
            if let Some(captured) = outcome.captured_mut() {
                captured.was_printing = was_printing;
            }
            outcome.into()
        }
        (WaitResult::TimedOut, _) => Outcome::TimedOut {
            no_calls_started: false,
            limit: limit.configured,
            output: streams.into_output(),
        }
        .into(),
    }
}

/// Terminates a program with a grace period, which is cut short when the run requests an immediate kill.
async fn terminate(child: &mut ChildProcess, grace: Duration, control: &RunControl) {
    tokio::select! {
        biased;
        () = control.wait_for_kill() => {}
        () = child.terminate(grace, control) => return,
    }
    child.terminate(Duration::ZERO, control).await;
}

/// Returns the outcome of a program that ended by itself.
fn outcome_of_exit(
    streams: CommandStreams,
    exit: ChildExit,
    success: &[i32],
    tool: &Tool,
) -> Outcome {
    let ChildExit::Exited { ending, leftovers } = exit else {
        if Reach::of_request(tool.effect, true) == Reach::MaybeDone {
            return Outcome::InDoubt {
                cause: DoubtCause::ReaperKilled,
                output: streams.into_output(),
            };
        }
        return Outcome::InternalError(
            "the program's reaper process was killed, and the program with it".to_owned(),
        );
    };
    let mut outcome = outcome_of_ending(streams, ending, success, tool);
    if let Some(captured) = outcome.captured_mut() {
        captured.killed_leftovers = leftovers;
    }
    outcome
}

fn outcome_of_ending(
    streams: CommandStreams,
    ending: CallEnding,
    success: &[i32],
    tool: &Tool,
) -> Outcome {
    if matches!(ending, CallEnding::ExitCode(code) if success.contains(&code)) {
        let (stderr, _) = streams.stderr_tail.finish(true);
        let mut outcome = streams.output.into_outcome(ending, || stderr.clone());
        let stderr_use = match &tool.backing {
            Some(Backing::Command(command)) => command.stderr,
            _ => StderrUse::default(),
        };
        if let Outcome::Succeeded { content, .. } = &mut outcome
            && let ResultContent::Text(text) = content
            && !stderr.trim().is_empty()
        {
            let separator = if text.is_empty() { "" } else { "\n" };
            match stderr_use {
                // What it printed there is all that it said.
                StderrUse::OnFailure if text.is_empty() => {}
                StderrUse::Always if tool.output == OutputKind::Text => {}
                _ => return outcome,
            }
            let _ = write!(text, "{separator}stderr:\n{}", stderr.trim_end());
        }
        return outcome;
    }
    Outcome::Failed {
        output: streams.into_output(),
        ending,
    }
}
