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

/// Decides what to do with a call. `state` is `None` if the log doesn't have it; `is_same_call` says whether its tool
/// and input are those in the log; `effect` is the more severe of its effect now and its effect when it was started.
pub(crate) fn decide_on_resume(
    state: Option<LoggedCallState>,
    is_same_call: bool,
    effect: Effect,
    has_probe: bool,
) -> ResumeDecision {
    let Some(state) = state else {
        return ResumeDecision::Run;
    };
    if !is_same_call {
        return ResumeDecision::Conflict;
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    use crate::resume::policy::{
        ResumeDecision::Conflict, ResumeDecision::InDoubt, ResumeDecision::Probe,
        ResumeDecision::Restore, ResumeDecision::Run, ResumeDecision::RunAgain,
    };

    /// The whole table, written out by hand. The columns are a `read`, an `idempotent` and a `write` tool, and the same
    /// three with a probe.
    #[test]
    fn every_cell_of_the_table_is_decided_as_written() {
        let table = [
            (None, [Run, Run, Run, Run, Run, Run]),
            (
                Some(LoggedCallState::Requested),
                [Run, Run, Run, Run, Run, Run],
            ),
            (
                Some(LoggedCallState::Started),
                [RunAgain, RunAgain, InDoubt, RunAgain, RunAgain, Probe],
            ),
            (
                Some(LoggedCallState::Interrupted),
                [RunAgain, RunAgain, InDoubt, RunAgain, RunAgain, Probe],
            ),
            (
                Some(LoggedCallState::Ended),
                [Restore, Restore, Restore, Restore, Restore, Restore],
            ),
            (
                Some(LoggedCallState::InDoubt),
                [Restore, Restore, Restore, Restore, Restore, Restore],
            ),
            (
                Some(LoggedCallState::Done),
                [Restore, Restore, Restore, Restore, Restore, Restore],
            ),
            (
                Some(LoggedCallState::NotDone),
                [RunAgain, RunAgain, RunAgain, RunAgain, RunAgain, RunAgain],
            ),
        ];
        let effects = [Effect::Read, Effect::Idempotent, Effect::Write];
        let columns = [false, true].map(|has_probe| effects.map(|effect| (effect, has_probe)));
        let mut cells = 0;
        for (state, row) in table {
            for ((effect, has_probe), expected) in columns.as_flattened().iter().copied().zip(row) {
                assert_eq!(
                    decide_on_resume(state, true, effect, has_probe),
                    expected,
                    "{state:?} {effect:?} {has_probe}"
                );
                let decision_for_another_call = if state.is_none() { Run } else { Conflict };
                assert_eq!(
                    decide_on_resume(state, false, effect, has_probe),
                    decision_for_another_call,
                    "{state:?}"
                );
                cells += 2;
            }
        }
        assert_eq!(cells, 96);
    }
}
