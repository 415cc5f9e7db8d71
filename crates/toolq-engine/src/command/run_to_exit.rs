//! Serves a started program until it ends, times out or is canceled, and makes an outcome of its end.

use std::fmt::Write as _;
use std::time::Duration;

use tracing::debug;

use crate::attempt::{Attempt, AttemptResult, canceled};
use crate::command::child::{ChildExit, ChildProcess};
use crate::command::pipe_io::CommandStreams;
use crate::command::spec::CommandSpec;
use crate::control::RunControl;
use toolq_core::types::{
    Backing, CallEnding, DoubtCause, Effect, Leftovers, Outcome, OutputKind, ResultContent,
    StderrUse, Tool,
};

/// Why waiting for a program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WaitResult {
    Exited,
    TimedOut,
    Canceled,
}

/// Serves the pipes of a started program until it ends, times out or is canceled.
pub(super) async fn run_to_exit(
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
        let leaves = spec.leftovers() == Leftovers::Allow;
        let is_waited_for = wait_result == WaitResult::Exited && !leaves;
        let limit = is_waited_for.then_some(tool.timeout.kill_grace);
        let was_printing = streams.drain(limit).await;
        if leaves {
            child.release(&streams.outputs()).await;
        }
        let exit = child.close(spec.leftovers(), &attempt.control).await;
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
    debug!(?wait_result, ?exit, "the program's processes have ended");
    match (wait_result, exit) {
        // Nothing ran, whatever it was canceled for meanwhile.
        (_, ChildExit::NotStarted(errno)) => spec.start_failure(errno).into(),
        (_, ChildExit::NotConfined(errno)) => spec.confinement_failure(errno).into(),
        (WaitResult::Canceled, _) => AttemptResult::canceled_while_running(streams.into_output()),
        (WaitResult::Exited, exit) => {
            let mut outcome = outcome_of_exit(streams, exit, spec.success_codes(), tool);
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
        if tool.effect == Effect::Write {
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
        let stderr = streams.stderr_tail.finish();
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
