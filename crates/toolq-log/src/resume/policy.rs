//! The resume table: what a resumed run does with a call, given its state in the log. Pure decisions without any I/O.

use crate::call_log::LoggedCallState;
use toolq_core::types::Effect;

/// What a resumed run does with a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ResumeDecision {
    /// Run it for the first time. A call that was rejected is checked again.
    Run,
    /// Run it with the next attempt number and the same idempotency key.
    RunAgain,
    /// Run its tool's probe first.
    Probe,
    /// Answer it as in doubt, now and until a user resolves it.
    InDoubt,
    /// Print its result from the log.
    Restore,
    /// The log has another call in its place: run nothing at all.
    Conflict,
}

/// What executes a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Executor {
    /// A tool: the more severe of its effect now and its effect when the call was started, and whether it has a probe.
    Tool(Effect, bool),
    /// An agent. Only the calls that it makes have effects, and those are recorded one by one.
    Agent,
    /// An agent with a call in doubt among its descendants.
    AgentInDoubt,
}

/// Decides what to do with a call. `state` is `None` if the log doesn't have it; `is_same_call` says whether its tool
/// and input are those in the log.
pub(crate) fn decide_on_resume(
    state: Option<LoggedCallState>,
    is_same_call: bool,
    executor: Executor,
) -> ResumeDecision {
    let Some(state) = state else {
        return ResumeDecision::Run;
    };
    if !is_same_call {
        return ResumeDecision::Conflict;
    }
    let (effect, has_probe) = match executor {
        Executor::Tool(effect, probe) => (effect, probe),
        Executor::Agent | Executor::AgentInDoubt => {
            return decide_for_agent(state, executor == Executor::AgentInDoubt);
        }
    };
    let is_write = effect == Effect::Write;
    match state {
        LoggedCallState::Requested => ResumeDecision::Run,
        // An interruption by the end of the run isn't a result of the tool: the call may have done its work or not.
        LoggedCallState::Started | LoggedCallState::Interrupted if !is_write => {
            ResumeDecision::RunAgain
        }
        LoggedCallState::Started | LoggedCallState::Interrupted if has_probe => {
            ResumeDecision::Probe
        }
        LoggedCallState::Started | LoggedCallState::Interrupted => ResumeDecision::InDoubt,
        LoggedCallState::Ended | LoggedCallState::InDoubt | LoggedCallState::Done => {
            ResumeDecision::Restore
        }
        LoggedCallState::NotDone => ResumeDecision::RunAgain,
    }
}

/// Decides what to do with a call that an agent works on. The agent resumes where it was interrupted, and after a doubt
/// once that is settled.
fn decide_for_agent(state: LoggedCallState, has_call_in_doubt: bool) -> ResumeDecision {
    match state {
        LoggedCallState::Requested => ResumeDecision::Run,
        LoggedCallState::InDoubt if has_call_in_doubt => ResumeDecision::Restore,
        LoggedCallState::Started
        | LoggedCallState::Interrupted
        | LoggedCallState::InDoubt
        | LoggedCallState::NotDone => ResumeDecision::RunAgain,
        LoggedCallState::Ended | LoggedCallState::Done => ResumeDecision::Restore,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::resume::policy::{
        ResumeDecision::Conflict, ResumeDecision::InDoubt, ResumeDecision::Probe,
        ResumeDecision::Restore, ResumeDecision::Run, ResumeDecision::RunAgain,
    };

    /// The whole table, written out by hand. The columns are a `read`, an `idempotent` and a `write` tool; the same
    /// three with a probe; an agent, and an agent with a call in doubt.
    #[test]
    fn every_cell_of_the_table_is_decided_as_written() {
        let table = [
            (None, [Run, Run, Run, Run, Run, Run, Run, Run]),
            (
                Some(LoggedCallState::Requested),
                [Run, Run, Run, Run, Run, Run, Run, Run],
            ),
            (
                Some(LoggedCallState::Started),
                [
                    RunAgain, RunAgain, InDoubt, RunAgain, RunAgain, Probe, RunAgain, RunAgain,
                ],
            ),
            (
                Some(LoggedCallState::Interrupted),
                [
                    RunAgain, RunAgain, InDoubt, RunAgain, RunAgain, Probe, RunAgain, RunAgain,
                ],
            ),
            (
                Some(LoggedCallState::Ended),
                [
                    Restore, Restore, Restore, Restore, Restore, Restore, Restore, Restore,
                ],
            ),
            (
                Some(LoggedCallState::InDoubt),
                [
                    Restore, Restore, Restore, Restore, Restore, Restore, RunAgain, Restore,
                ],
            ),
            (
                Some(LoggedCallState::Done),
                [
                    Restore, Restore, Restore, Restore, Restore, Restore, Restore, Restore,
                ],
            ),
            (
                Some(LoggedCallState::NotDone),
                [
                    RunAgain, RunAgain, RunAgain, RunAgain, RunAgain, RunAgain, RunAgain, RunAgain,
                ],
            ),
        ];
        let effects = [Effect::Read, Effect::Idempotent, Effect::Write];
        let tools =
            [false, true].map(|has_probe| effects.map(|effect| Executor::Tool(effect, has_probe)));
        let columns = tools.as_flattened().iter().copied();
        let columns: Vec<_> = columns
            .chain([Executor::Agent, Executor::AgentInDoubt])
            .collect();
        let mut cells = 0;
        for (state, row) in table {
            for (executor, expected) in columns.iter().copied().zip(row) {
                assert_eq!(
                    decide_on_resume(state, true, executor),
                    expected,
                    "{state:?} {executor:?}"
                );
                let decision_for_another_call = if state.is_none() { Run } else { Conflict };
                assert_eq!(
                    decide_on_resume(state, false, executor),
                    decision_for_another_call,
                    "{state:?}"
                );
                cells += 2;
            }
        }
        assert_eq!(cells, 128);
    }
}
