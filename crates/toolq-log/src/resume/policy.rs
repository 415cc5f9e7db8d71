//! What a resumed run does with a call, by what the log says of it: the one table, without a file in sight.

use toolq_core::types::Effect;

/// Where a call stands in a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    /// It was asked for, and nothing more. What was skipped or rejected stands no further: it was never started.
    Asked,
    /// It was started and has no end.
    Started,
    /// It was started, and ended because its run was.
    CutShort,
    /// It has its result.
    Ended,
    /// It was answered as in doubt.
    InDoubt,
    /// It was in doubt, and somebody said that it was done, and what came of it.
    Done,
    /// It was started, and surely did nothing: somebody said so, or it was ended before it could.
    NotDone,
}

/// What becomes of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Decision {
    /// It runs for the first time. What was rejected is judged again.
    Run,
    /// It runs with the next attempt's number and the same key.
    Again,
    /// Its tool's probe is asked first.
    Probe,
    /// It is answered as in doubt, now and until somebody resolves it.
    InDoubt,
    /// Its answer is printed from the log.
    Print,
    /// The log has another call in its place: nothing runs at all.
    Conflict,
}

/// What does the work of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Work {
    /// Its tool: the graver of what that does to the world and did when the call was started, and whether it has a probe.
    Tool(Effect, bool),
    /// An agent. What has effects is what it calls, and that is on record call by call.
    Agent,
    /// An agent, and a call that it asked for, or one further below, is in doubt.
    DoubtfulAgent,
}

/// The decision about a call that the log knows or doesn't. `same` is whether tool and input are those of the log.
pub(crate) fn decide(state: Option<State>, same: bool, work: Work) -> Decision {
    let Some(state) = state else {
        return Decision::Run;
    };
    if !same {
        return Decision::Conflict;
    }
    let (effect, probe) = match work {
        Work::Tool(effect, probe) => (effect, probe),
        Work::Agent | Work::DoubtfulAgent => return go_on(state, work == Work::DoubtfulAgent),
    };
    let writes = effect == Effect::Write;
    match state {
        State::Asked => Decision::Run,
        // What the end of a run cut off is no result of the tool's; looking again does no harm.
        State::Started | State::CutShort if !writes => Decision::Again,
        State::Started if probe => Decision::Probe,
        State::Started => Decision::InDoubt,
        State::CutShort | State::Ended | State::InDoubt | State::Done => Decision::Print,
        State::NotDone => Decision::Again,
    }
}

/// An agent goes on wherever it was left, and from a doubt when that is settled.
fn go_on(state: State, in_doubt: bool) -> Decision {
    match state {
        State::Asked => Decision::Run,
        State::InDoubt if in_doubt => Decision::Print,
        State::Started | State::CutShort | State::InDoubt | State::NotDone => Decision::Again,
        State::Ended | State::Done => Decision::Print,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::resume::policy::{
        Decision::Again, Decision::Conflict, Decision::InDoubt, Decision::Print, Decision::Probe,
        Decision::Run,
    };

    /// FAULTS 116–118, 128: every row of the table, written out by hand. The columns are a tool that reads, one that is
    /// idempotent, one that writes; then the same three with a probe; an agent, and one with a call in doubt.
    #[test]
    fn the_table() {
        let table = [
            (None, [Run, Run, Run, Run, Run, Run, Run, Run]),
            (Some(State::Asked), [Run, Run, Run, Run, Run, Run, Run, Run]),
            (
                Some(State::Started),
                [Again, Again, InDoubt, Again, Again, Probe, Again, Again],
            ),
            (
                Some(State::CutShort),
                [Again, Again, Print, Again, Again, Print, Again, Again],
            ),
            (
                Some(State::Ended),
                [Print, Print, Print, Print, Print, Print, Print, Print],
            ),
            (
                Some(State::InDoubt),
                [Print, Print, Print, Print, Print, Print, Again, Print],
            ),
            (
                Some(State::Done),
                [Print, Print, Print, Print, Print, Print, Print, Print],
            ),
            (
                Some(State::NotDone),
                [Again, Again, Again, Again, Again, Again, Again, Again],
            ),
        ];
        let effects = [Effect::Read, Effect::Idempotent, Effect::Write];
        let tools = [false, true].map(|probe| effects.map(|effect| Work::Tool(effect, probe)));
        let columns = tools.as_flattened().iter().copied();
        let columns: Vec<_> = columns.chain([Work::Agent, Work::DoubtfulAgent]).collect();
        let mut cells = 0;
        for (state, row) in table {
            for (work, expected) in columns.iter().copied().zip(row) {
                assert_eq!(decide(state, true, work), expected, "{state:?} {work:?}");
                let other = if state.is_none() { Run } else { Conflict };
                assert_eq!(decide(state, false, work), other, "{state:?}");
                cells += 2;
            }
        }
        assert_eq!(cells, 128);
    }
}
